#!/bin/bash
# One would guess that `ip route show dev v0` lists every route whose packets leave by v0.
#
# It leaves out multipath routes, even if all their next hops are on v0; the Go library's
# RouteList(link, …) does so, too. Without a device both list the route.
#
# iproute2 6.1.0-3 (Debian), github.com/vishvananda/netlink 1.3.1 (Go), 2026-11-28
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
	link, err := netlink.LinkByName("v0")
	if err != nil {
		panic(err)
	}
	for _, l := range []netlink.Link{link, nil} {
		routes, err := netlink.RouteList(l, netlink.FAMILY_V4)
		if err != nil {
			panic(err)
		}
		fmt.Print(" ", len(routes))
	}
	fmt.Println()
}
END
go build -o list .
cat >show.sh <<'END'
ip link add v0 type veth peer name v1
ip link set v0 up
ip link set v1 up
ip address add 10.9.0.1/24 dev v0
ip route add 10.8.0.0/24 nexthop via 10.9.0.2 dev v0 nexthop via 10.9.0.3 dev v0
ip route >&2
echo "$(ip -o route show dev v0 | wc -l) $(ip -o route | wc -l)$(./list)"
END
expect "routes: ip of v0, of all; Go of v0, of all" "1 2 1 2" \
	"$(own_network show.sh)"
