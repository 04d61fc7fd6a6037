#!/bin/bash
# One would guess that the Go library describes a map of the kernel as it describes other maps: the
# key's type, the data's type, and for `80 : drop` a verdict.
#
# Of a map from ports to verdicts it gives "verdict" as the type of the key and none of the data,
# and no verdict in the elements: their value is the kernel's netlink attribute. Of a map from
# addresses to ports both types are right.
#
# github.com/google/nftables 0.3.0 (Go), nftables 1.0.6-2+deb12u2 (Debian), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get nftables=1.0.6-2+deb12u2 libnftables1=1.0.6-2+deb12u2 libnftnl11=1.2.4-2 libmnl0=1.0.4-3
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
	sets, err := c.GetSets(&nftables.Table{Family: nftables.TableFamilyINet, Name: "t"})
	if err != nil {
		panic(err)
	}
	for _, s := range sets {
		elements, err := c.GetSetElements(s)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: key %q data %q verdict %v value %v\n", s.Name, s.KeyType.Name,
			s.DataType.Name, elements[0].VerdictData != nil, elements[0].Val)
	}
}
END
go build -o list .
cat >run.sh <<'END'
nft 'table inet t {
	map ports { type ipv4_addr : inet_service; elements = { 10.0.0.1 : 80 }; }
	map verdicts { type inet_service : verdict; elements = { 80 : drop }; }
}'
./list
END
own_network run.sh >out
expect "map of ports" 'ports: key "ipv4_addr" data "inet_service" verdict false value [0 80]' \
	"$(grep ^ports out)"
expect "map of verdicts" \
	'verdicts: key "verdict" data "" verdict false value [8 0 1 0 0 0 0 0]' "$(grep ^verdicts out)"
