#!/bin/bash
# One would guess that the Go library's RuleList tells a rule for VRFs, which the kernel adds with the
# first VRF, from a rule that sends all packets to one table.
#
# It does not read the attribute: the rule is "from all to table 0", as if it held for everything. A
# program that writes it back with RuleAdd gets a rule for all packets. `ip rule` shows
# [l3mdev-table].
#
# github.com/vishvananda/netlink 1.3.1 (Go), iproute2 6.1.0-3 (Debian), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1 libmnl0=1.0.4-3
go_get github.com/vishvananda/netlink@v1.3.1
cat >main.go <<'END'
package main

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

func main() {
	rules, err := netlink.RuleList(netlink.FAMILY_V4)
	if err != nil {
		panic(err)
	}
	for _, r := range rules {
		if r.Priority == 1000 {
			fmt.Printf("table %d, %+v\n", r.Table, r)
			r.Family = netlink.FAMILY_V4
			r.Priority = 1001
			fmt.Println(netlink.RuleAdd(&r))
		}
	}
}
END
go mod tidy 2>/dev/null
go build -o list .
cat >run.sh <<'END'
ip rule add l3mdev pref 1000
ip rule show pref 1000
./list
ip rule show pref 1001
END
own_network run.sh >seen
expect "ip rule" "1000: from all lookup [l3mdev-table]" "$(sed -n 1p seen | tr '\t' ' ')"
expect "RuleList" "table 0, ip rule 1000: from all to all table 0" "$(sed -n 's/ $//; 2p' seen)"
expect "its error, when it is added with priority 1001" "<nil>" "$(sed -n 3p seen)"
expect "ip rule" "1001: from all lookup 1" "$(sed -n 4p seen | tr '\t' ' ')"
