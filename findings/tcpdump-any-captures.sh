#!/bin/bash
# One would guess that what `tcpdump -i any -w` writes down on a container host can be read by the
# tools and libraries that read other captures of tcpdump.
#
# It is of link type 276 (LINUX_SLL2), which ngrep, tcpflow and tcptrace refuse. gopacket, which
# keeps link types in 8 bits, opens it as link type 20, and finds no TCP in any packet. `-y
# LINUX_SLL` writes the older type, which all four read.
#
# tcpdump 4.99.3, ngrep 1.47+ds1, tcpflow-nox 1.6.1, tcptrace 6.6.7 (Debian),
# github.com/google/gopacket 1.1.19 (Go), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get tcpdump=4.99.3-1 libpcap0.8=1.10.3-1 ngrep=1.47+ds1-5+b1 libnet1=1.1.6+dfsg-3.2 \
	tcpflow-nox=1.6.1-2+b1 libhttp-parser2.9=2.9.4-5 tcptrace=6.6.7-6+b1 iproute2=6.1.0-3 \
	libbpf1=1:1.1.2-0+deb12u1 libmnl0=1.0.4-3
go_get github.com/google/gopacket@v1.1.19
cat >main.go <<'END'
package main

import (
	"fmt"
	"os"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

func main() {
	for _, name := range []string{"new.pcap", "old.pcap"} {
		file, err := os.Open(name)
		if err != nil {
			panic(err)
		}
		reader, err := pcapgo.NewReader(file)
		if err != nil {
			panic(err)
		}
		packets, tcp := 0, 0
		for p := range gopacket.NewPacketSource(reader, reader.LinkType()).Packets() {
			packets++
			if p.Layer(layers.LayerTypeTCP) != nil {
				tcp++
			}
		}
		words := map[int]string{0: "none", packets: "all"}
		fmt.Printf("type %d, packets with TCP: %s\n", reader.LinkType(), words[tcp])
	}
}
END
go mod tidy 2>/dev/null
go build -o read .
cat >talk.py <<'END'
import socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
there = server.accept()[0]
client.sendall(b"hello")
there.recv(5)
client.close()
there.recv(1)
there.close()
END
cat >run.sh <<'END'
ip link set lo up
for name in new old; do
	options=""
	[ $name = new ] || options="-y LINUX_SLL"
	root/usr/bin/tcpdump -i any -U -w $name.pcap $options tcp 2>$name.log &
	for _ in $(seq 100); do grep -q listening $name.log && break; sleep 0.1; done
	python3 talk.py
	sleep 1
	kill $!
	wait || true
done
END
# As another user than root tcpdump does not look for a user of its own.
LD_LIBRARY_PATH=$(echo root/usr/lib/*-linux-gnu) \
	unshare -nU --map-user=1000 --keep-caps bash -e run.sh
for name in new old; do
	debian ngrep -q -I $name.pcap hello >$name.ngrep 2>&1 || true
	debian tcpflow -r $name.pcap -o $name.flow >$name.tcpflow 2>&1 || true
	debian tcptrace $name.pcap >$name.tcptrace 2>&1 || true
done
./read >seen
expect "ngrep" "fatal: unsupported interface type 276" "$(grep fatal new.ngrep)"
expect "tcpflow" "sorry - unknown datalink type 276 on interface new.pcap" \
	"$(grep -o 'sorry.*' new.tcpflow)"
expect "tcptrace" "tcptrace did not understand link format (276)!" "$(head -1 new.tcptrace)"
expect "gopacket" "type 20, packets with TCP: none" "$(sed -n 1p seen)"
expect "of the older type, ngrep" hello "$(grep -o hello old.ngrep | tail -1)"
expect "tcpflow" hello "$(cat old.flow/127*)"
holds "tcptrace" "$(sed -nE 's/.* ([0-9]+) TCP packets traced.*/\1/p' old.tcptrace) > 5"
expect "gopacket" "type 113, packets with TCP: all" "$(sed -n 2p seen)"
