#!/bin/bash
# One would guess that readers of pcapng return simple packets, which have neither a time nor an
# interface, with their bytes, and that a snapshot length of 0 is no limit, as the format says.
#
# dpkt leaves simple packets out, without an error. scapy returns them without their 60 bytes if the
# snapshot length is 0, and with the time at which it reads them. gopacket returns all of them.
#
# dpkt 1.9.8, scapy 2.8.0, python-pcapng 2.1.1 (PyPI), gopacket/gopacket 1.7.7 (Go), 2026-11-29;
# draft-ietf-opsawg-pcapng, "Simple Packet Block" and "Interface Description Block"
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get dpkt==1.9.8 scapy==2.8.0 python-pcapng==2.1.1
go_get github.com/gopacket/gopacket/pcapgo@v1.7.7
cat >write.py <<'END'
import pcapng
from pcapng import blocks
for limit in 0, 65535:
    header = blocks.SectionHeader()
    interface = header.new_member(blocks.InterfaceDescription, link_type=1, snaplen=limit)
    with open(f"limit{limit}", "wb") as file:
        writer = pcapng.FileWriter(file, header)
        for kind in blocks.SimplePacket, blocks.EnhancedPacket:
            packet = header.new_member(kind)
            packet.packet_data = b"\x02" * 60
            writer.write_block(packet)
END
cat >read.py <<'END'
import sys
import time
import dpkt
from scapy.all import rdpcap
with open(sys.argv[1], "rb") as file:
    print("dpkt", *[len(data) for _, data in dpkt.pcapng.Reader(file)])
packets = rdpcap(sys.argv[1])
recent = abs(time.time() - packets[0].time) < 60
print("scapy", *[len(p.original) for p in packets], "now" if recent else "another time")
END
cat >main.go <<'END'
package main

import (
	"fmt"
	"os"

	"github.com/gopacket/gopacket/pcapgo"
)

func main() {
	f, err := os.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	r, err := pcapgo.NewNgReader(f, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		panic(err)
	}
	for {
		data, _, err := r.ReadPacketData()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(len(data), " ")
	}
}
END
go build -o read .
py/bin/python write.py
for limit in 0 65535; do
	echo "a simple and an enhanced packet of 60 bytes, snapshot length $limit"
	py/bin/python read.py limit$limit >seen
	expect "bytes" "dpkt 60" "$(sed -n 1p seen)"
	case $limit in
	0) bytes=0 ;;
	*) bytes=60 ;;
	esac
	expect "bytes, the time of the simple one" "scapy $bytes 60 now" "$(sed -n 2p seen)"
	expect "gopacket, bytes" "60 60 EOF" "$(./read limit$limit)"
done
