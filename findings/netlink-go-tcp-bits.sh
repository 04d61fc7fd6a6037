#!/bin/bash
# One would guess that the Go library's TCPInfo of a socket has the figures that ss shows: the
# window scales, and whether the application limited the rate of delivery.
#
# It takes these bits from the wrong ends of their bytes. Snd_wscale is the receiver's scale and
# Rcv_wscale the sender's. Delivery_rate_app_limited is 0 where ss says app_limited: the rate of a
# connection that was mostly idle passes for that of the network.
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
	"net"
	"os"
	"os/exec"
	"syscall"

	"github.com/vishvananda/netlink"
)

func main() {
	fd, _ := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096)
	syscall.Bind(fd, &syscall.SockaddrInet4{Port: 8000, Addr: [4]byte{127, 0, 0, 1}})
	syscall.Listen(fd, 1)
	client, err := net.Dial("tcp4", "127.0.0.1:8000")
	if err != nil {
		panic(err)
	}
	server, _, err := syscall.Accept(fd)
	if err != nil {
		panic(err)
	}
	client.Write([]byte("question"))
	syscall.Read(server, make([]byte, 100))
	text, err := exec.Command("ss", "-Htin", "dst", "127.0.0.1:8000").Output()
	if err != nil {
		panic(err)
	}
	os.WriteFile("ss", text, 0o600)
	all, err := netlink.SocketDiagTCPInfo(syscall.AF_INET)
	if err != nil {
		panic(err)
	}
	for _, s := range all {
		if s.InetDiagMsg.ID.DestinationPort == 8000 {
			fmt.Printf("wscale:%d,%d app_limited:%d\n", s.TCPInfo.Snd_wscale, s.TCPInfo.Rcv_wscale,
				s.TCPInfo.Delivery_rate_app_limited)
		}
	}
}
END
go mod tidy 2>/dev/null
go build -o list .
printf 'ip link set lo up\n./list >netlink\n' >run.sh
own_network run.sh
ss=$(grep -o 'wscale:[0-9]*,[0-9]*' ss) go=$(grep -o 'wscale:[0-9]*,[0-9]*' netlink)
echo "ss: $ss; netlink: $go"
expect "ss" "app_limited" "$(grep -o app_limited ss)"
expect "netlink" "app_limited:0" "$(grep -o 'app_limited:.' netlink)"
holds "the scales differ" "$(sed 's/wscale:\(.*\),\(.*\)/\1 != \2/' <<<"$ss")"
expect "netlink's scales, the other way round" "$ss" \
	"$(sed 's/wscale:\(.*\),\(.*\)/wscale:\2,\1/' <<<"$go")"
