#!/bin/bash
# One would guess that readers of pcapng add an interface's if_tsoffset, as the format says: the
# seconds that its packets' timestamps are counted from.
#
# scapy and python-pcapng read the option and do not add it, so such a packet is of January 1970.
# gopacket adds it. All three obey if_tsresol, the option next to it.
#
# scapy 2.8.0, python-pcapng 2.1.1 (PyPI), gopacket/gopacket 1.7.7 (Go), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get scapy==2.8.0 python-pcapng==2.1.1
go_get github.com/gopacket/gopacket/pcapgo@v1.7.7
cat >write.py <<'END'
import struct

def pad(b):
    return b + bytes(-len(b) % 4)

def block(kind, body):
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size

def option(code, value):
    return struct.pack("<HH", code, len(value)) + pad(value)

def write(name, options, time):
    packet = bytes(60)
    with open(name, "wb") as f:
        f.write(block(0x0a0d0d0a, struct.pack("<IHHq", 0x1a2b3c4d, 1, 0, -1)))
        f.write(block(1, struct.pack("<HHI", 1, 0, 0) + options + option(0, b"")))
        f.write(block(6, struct.pack("<IIIII", 0, time >> 32, time & 0xffffffff, 60, 60) + packet))

write("offset.pcapng", option(14, struct.pack("<q", 1700000000)), 250000)
write("resolution.pcapng", option(9, b"\x03"), 1700000000250)
END
cat >read.py <<'END'
import sys
import pcapng
from scapy.all import rdpcap
name = sys.argv[1]
with open(name, "rb") as f:
    times = [b for b in pcapng.FileScanner(f) if hasattr(b, "timestamp")]
print(float(rdpcap(name)[0].time), times[0].timestamp,
      times[0].interface.options.get("if_tsoffset"))
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
	_, info, err := r.ReadPacketData()
	fmt.Println(info.Timestamp.UnixMilli(), err)
}
END
go build -o read .
python3 write.py
expect "offset 1700000000 s, time 0.25 s: scapy, python-pcapng, its option" "0.25 0.25 1700000000" \
	"$(py/bin/python read.py offset.pcapng)"
expect "gopacket, ms" "1700000000250 <nil>" "$(./read offset.pcapng)"
expect "1700000000250 ms: scapy, python-pcapng, no offset" "1700000000.25 1700000000.25 None" \
	"$(py/bin/python read.py resolution.pcapng)"
expect "gopacket, ms" "1700000000250 <nil>" "$(./read resolution.pcapng)"
