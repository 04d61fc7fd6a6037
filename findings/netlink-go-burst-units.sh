#!/bin/bash
# One would guess that a library's fields of one name have one unit: Buffer of an HTB class and of
# a TBF queue, and of a class as set and as read back.
#
# Buffer of HtbClassAttrs, which one sets, is in bytes; Buffer of the HtbClass that NewHtbClass
# makes and that ClassList reads is in the kernel's ticks of 64 ns: 1600 becomes 25000. Buffer of
# Tbf, which one sets too, is in ticks: 10000 gives a bucket of 640 bytes at 8 Mbit/s.
#
# github.com/vishvananda/netlink 1.3.1 (Go), iproute2 6.1.0-3 (Debian), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1 libmnl0=1.0.4-3
go_get github.com/vishvananda/netlink@v1.3.1
cat >main.go <<'END'
package main

import (
	"fmt"

	nl "github.com/vishvananda/netlink"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	a := nl.NewLinkAttrs()
	a.Name = "v0"
	must(nl.LinkAdd(&nl.Veth{LinkAttrs: a, PeerName: "v1"}))
	for _, name := range []string{"v0", "v1"} {
		l, err := nl.LinkByName(name)
		must(err)
		must(nl.LinkSetUp(l))
		root := nl.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: nl.MakeHandle(1, 0),
			Parent: nl.HANDLE_ROOT}
		if name == "v1" {
			must(nl.QdiscAdd(&nl.Tbf{QdiscAttrs: root, Rate: 1000000, Limit: 20000, Buffer: 10000}))
			continue
		}
		must(nl.QdiscAdd(nl.NewHtb(root)))
		must(nl.ClassAdd(nl.NewHtbClass(nl.ClassAttrs{LinkIndex: l.Attrs().Index,
			Parent: nl.MakeHandle(1, 0), Handle: nl.MakeHandle(1, 1)},
			nl.HtbClassAttrs{Rate: 8000000, Ceil: 8000000, Buffer: 1600, Cbuffer: 1600})))
		classes, err := nl.ClassList(l, 0)
		must(err)
		fmt.Println(classes[0].(*nl.HtbClass).Buffer)
	}
}
END
go build -o set .
cat >run.sh <<'END'
./set
tc class show dev v0 | grep -o ' burst [^ ]*'
tc qdisc show dev v1 | grep -o ' burst [^ ]*'
END
expect "HTB, 1600 set: as read back, as tc shows it; TBF, 10000 set: as tc shows it" \
	"25000 burst 1600b burst 640b" \
	"$(own_network run.sh | tr -d '\n')"
