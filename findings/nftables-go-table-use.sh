#!/bin/bash
# One would guess that Table.Use, which the Go library reads from the kernel, is the number of
# chains and sets in the table: 2 for a table with a chain and a set.
#
# Its bytes are in the wrong order: it is 33554432, 2 in big endian read as little endian.
#
# github.com/google/nftables 0.3.0 (Go), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

go_get github.com/google/nftables@v0.3.0
cat >main.go <<'END'
package main

import (
	"fmt"

	"github.com/google/nftables"
)

func main() {
	c, err := nftables.New()
	if err != nil {
		panic(err)
	}
	t := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "t"})
	c.AddChain(&nftables.Chain{Table: t, Name: "c"})
	err = c.AddSet(&nftables.Set{Table: t, Name: "s", KeyType: nftables.TypeIPAddr}, nil)
	if err == nil {
		err = c.Flush()
	}
	if err != nil {
		panic(err)
	}
	tables, err := c.ListTables()
	if err != nil {
		panic(err)
	}
	fmt.Println(tables[0].Use)
}
END
go build -o use .
little=$(python3 -c 'import sys; print(sys.byteorder)')
expect "Table.Use with one chain and one set, on a $little-endian machine" 33554432 \
	"$(unshare -rn ./use)"
