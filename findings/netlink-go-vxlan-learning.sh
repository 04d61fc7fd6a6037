#!/bin/bash
# One would guess that a VXLAN device that vishvananda/netlink makes of &netlink.Vxlan{VxlanId: 7,
# Port: 4789} is that of `ip link add vx type vxlan id 7 dstport 4789`, which learns from frames
# that come behind which node an address is.
#
# It does not learn: `ip -d link` says "nolearning", as the Go field's zero value is sent to the
# kernel, whose own default is to learn. Each frame to a peer goes to all nodes of the device's
# list, for ever: of 100 datagrams from the first of three nodes to the second the third gets 100
# copies.
#
# github.com/vishvananda/netlink 1.3.1 (Go), iproute2 6.1.0-3 (Debian), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

go_get github.com/vishvananda/netlink@v1.3.1
deb_get iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1 libmnl0=1.0.4-3
cat >main.go <<'END'
package main

import "github.com/vishvananda/netlink"

func main() {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = "vx"
	vxlan := &netlink.Vxlan{LinkAttrs: attributes, VxlanId: 7, Port: 4789}
	if err := netlink.LinkAdd(vxlan); err != nil {
		panic(err)
	}
}
END
go mod tidy 2>/dev/null
go build -o make .
# Three nodes on a switch, each of which sends what it knows no node for to both others.
cat >run.sh <<'END'
how=$1
ip link add switch type bridge
ip link set switch up
pids=()
trap 'kill "${pids[@]}"' EXIT
for i in 1 2 3; do
	unshare -n sleep 100 &
	pids[i]=$!
	until [ "$(readlink /proc/${pids[i]}/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do
		sleep 0.05
	done
	ip link add e$i type veth peer name eth0 netns "${pids[i]}"
	ip link set e$i master switch up
	cat >node.sh <<-NODE
		ip link set eth0 up
		ip addr add 192.0.2.$i/24 dev eth0
		if [ $how = ip ]; then ip link add vx type vxlan id 7 dstport 4789; else ./make; fi
		ip addr add 10.9.0.$i/24 dev vx
		ip link set vx up
		for j in 1 2 3; do
			[ \$j = $i ] || bridge fdb append 00:00:00:00:00:00 dev vx dst 192.0.2.\$j
		done
	NODE
	nsenter -n -t "${pids[i]}" bash -e node.sh
done
nsenter -n -t "${pids[1]}" ip -d link show vx | grep -o nolearning || echo learning
nsenter -n -t "${pids[1]}" python3 -c '
import socket, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    for _ in range(100):
        s.sendto(bytes(1000), ("10.9.0.2", 9))
        time.sleep(0.01)'
sleep 0.5
nsenter -n -t "${pids[3]}" grep eth0: /proc/net/dev | awk '{ print $2 }'
END
for how in ip netlink; do
	echo "bash -e run.sh $how" >which.sh
	own_network which.sh >seen
	read -r learns received <<<"$(paste -sd ' ' seen)"
	echo "made by $how: $learns; bytes that the third node received: $received"
	if [ $how = ip ]; then
		holds "  it learns; fewer than 20 copies" "\"$learns\" == \"learning\" && $received < 20000"
	else
		holds "  it does not; 100 copies" "\"$learns\" == \"nolearning\" && $received > 100000"
	fi
done
