#!/bin/bash
# One would guess that the Go library returns a rule with all of its expressions, at least those that
# it can write, or tells that some are missing.
#
# It leaves out tproxy, socket, rt, dup and byteorder, all of which it writes, and others, without an
# error: a rule that redirects to a proxy loses its last step. A program that copies rules writes other ones.
#
# github.com/google/nftables 0.3.0 (Go), nftables 1.0.6-2+deb12u2 (Debian), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get nftables=1.0.6-2+deb12u2 libnftables1=1.0.6-2+deb12u2 libnftnl11=1.2.4-2 libmnl0=1.0.4-3
go_get github.com/google/nftables@v0.3.0
cat >main.go <<'END'
package main

import (
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
)

func main() {
	c, err := nftables.New()
	if err != nil {
		panic(err)
	}
	table := &nftables.Table{Family: nftables.TableFamilyIPv4, Name: "t"}
	chain := &nftables.Chain{Table: table, Name: "c"}
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Register: 1, Op: expr.CmpOpEq, Data: []byte{6}},
		&expr.Immediate{Register: 1, Data: []byte{0x1f, 0x90}},
		&expr.TProxy{Family: byte(table.Family), TableFamily: byte(table.Family), RegPort: 1},
	}})
	if err := c.Flush(); err != nil {
		panic(err)
	}
	rules, err := c.GetRules(table, chain)
	if err != nil {
		panic(err)
	}
	for _, r := range rules {
		for _, e := range r.Exprs {
			fmt.Printf("%T ", e)
		}
		fmt.Println()
	}
}
END
go build -o list .
cat >run.sh <<'END'
nft 'table ip t { chain c { type filter hook prerouting priority 0; }; }'
nft add rule ip t c socket transparent 1 counter
nft add rule ip t c dup to 10.0.0.1 counter
nft add rule ip t c rt classid 7 counter
./list
nft list chain ip t c
END
own_network run.sh >seen
expect "socket transparent 1 counter" "*expr.Cmp *expr.Counter " "$(sed -n 1p seen)"
expect "dup to 10.0.0.1 counter" "*expr.Immediate *expr.Counter " "$(sed -n 2p seen)"
expect "rt classid 7 counter" "*expr.Cmp *expr.Counter " "$(sed -n 3p seen)"
expect "meta l4proto tcp tproxy to :8080" "*expr.Meta *expr.Cmp *expr.Immediate " \
	"$(sed -n 4p seen)"
expect "nft" "meta l4proto tcp tproxy to :8080" "$(sed -n 's/^\t*//; /tproxy/p' seen)"
