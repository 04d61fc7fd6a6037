#!/bin/bash
# One would guess that gopacket gives the same payload for a packet, whichever of its two decoders
# reads it, and no payload of a wrong length without an error.
#
# Of a segment of 100000 bytes in an IPv4 packet of total length 0 (BIG TCP) both give 34464 bytes
# and no error: the length is taken modulo 65536. Of the same in an IPv6 jumbogram NewPacket gives
# 100000, DecodingLayerParser an error: it takes the hop-by-hop header for TCP. The fork
# github.com/gopacket/gopacket 1.7.7 gives 100000 each time.
#
# github.com/google/gopacket 1.1.19 (Go), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

python3 "$here/big-tcp.py"
cat >read.go <<'END'
package main

import (
	"fmt"
	"os"

	"MODULE"
	"MODULE/layers"
)

func main() {
	for _, name := range []string{"zero.pcap", "jumbo.pcap"} {
		data, err := os.ReadFile(name)
		if err != nil {
			panic(err)
		}
		data = data[24+16:] // headers of the file and of the packet
		p := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.Default)
		var e layers.Ethernet
		var ip4 layers.IPv4
		var ip6 layers.IPv6
		var tcp layers.TCP
		var rest gopacket.Payload
		parser := gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet,
			&e, &ip4, &ip6, &tcp, &rest)
		var types []gopacket.LayerType
		err = parser.DecodeLayers(data, &types)
		fmt.Println(name, len(p.TransportLayer().LayerPayload()), len(tcp.Payload), err)
	}
}
END

# read_with MODULE VERSION prints what it reads.
read_with() {
	mkdir module
	cd module
	cp ../*.pcap .
	sed "s#MODULE#$1#" ../read.go >main.go
	go_get "$1@$2"
	go mod tidy >&2
	go run .
	cd .. && rm -r module
}
expect "google/gopacket 1.1.19: payload by NewPacket, by DecodingLayerParser, its error" \
	"zero.pcap 34464 34464 <nil>, jumbo.pcap 100000 0 Invalid TCP data offset 0 < 5" \
	"$(read_with github.com/google/gopacket v1.1.19 2>/dev/null | sed -z 's/\n/, /; s/\n$//')"
expect "gopacket/gopacket 1.7.7" \
	"zero.pcap 100000 100000 <nil>, jumbo.pcap 100000 100000 <nil>" \
	"$(read_with github.com/gopacket/gopacket v1.7.7 2>/dev/null | sed -z 's/\n/, /; s/\n$//')"
