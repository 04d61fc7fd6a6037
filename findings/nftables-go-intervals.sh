#!/bin/bash
# One would guess that the Go library gives the elements of an interval set as pairs of start and
# end in ascending order: two for the set { 10.0.0.0/8 }.
#
# It gives them as the kernel keeps them: the highest first, each end before its start, and one more
# end, 0.0.0.0, to which no start belongs. A loop that pairs the first with the second element
# takes 11.0.0.0 for a start. `nft list set` shows one interval.
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
	"net/netip"

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
	elements, err := c.GetSetElements(sets[0])
	if err != nil {
		panic(err)
	}
	for _, e := range elements {
		address, _ := netip.AddrFromSlice(e.Key)
		fmt.Print(address, map[bool]string{true: " end ", false: " start "}[e.IntervalEnd])
	}
	fmt.Println()
}
END
go build -o list .
cat >run.sh <<'END'
nft 'table inet t { set s { type ipv4_addr; flags interval; elements = { 10.0.0.0/8 }; }; }'
nft list set inet t s >&2
./list
END
expect "elements of { 10.0.0.0/8 }" "11.0.0.0 end 10.0.0.0 start 0.0.0.0 end " \
	"$(own_network run.sh)"
