#!/bin/bash
# One would guess that a reader of pcapng gives the packets of a second interface, as of a capture
# merged from two, the times that the file has, whatever the resolution of each interface is.
#
# dpkt reads all times by the first interface's: of an interface with nanoseconds, after one with
# microseconds, they are 1000 times too large, in the year 55840. scapy and python-pcapng are right.
#
# dpkt 1.9.8, scapy 2.8.0, python-pcapng 2.1.1 (PyPI), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get dpkt==1.9.8 scapy==2.8.0 python-pcapng==2.1.1
cat >write.py <<'END'
import struct
def block(kind, body):
    body += bytes(-len(body) % 4)
    size = len(body) + 12
    return struct.pack("<II", kind, size) + body + struct.pack("<I", size)
def interface(resolution):
    option = struct.pack("<HHB3xHH", 9, 1, resolution, 0, 0)
    return block(1, struct.pack("<HHI", 1, 0, 262144) + option)
def packet(number, ticks, data):
    return block(6, struct.pack("<IIIII", number, ticks >> 32, ticks & 0xffffffff, len(data),
                                len(data)) + data)
ether = bytes.fromhex("0200000000010200000000020800"
    "4500001c00000000401166cf0a0000010a0000020035003500080000")
second = 1_700_000_000
with open("two.pcapng", "wb") as f:
    f.write(block(0x0a0d0d0a, struct.pack("<IHHq", 0x1a2b3c4d, 1, 0, -1)) +
            interface(6) + interface(9) +
            packet(0, second * 10**6, ether) + packet(1, (second + 1) * 10**9, ether))
END
python3 write.py
cat >read.py <<'END'
import dpkt, pcapng
from scapy.all import rdpcap
with open("two.pcapng", "rb") as f:
    print("dpkt", *(int(t) for t, _ in dpkt.pcapng.Reader(f)))
print("scapy", *(int(p.time) for p in rdpcap("two.pcapng")))
with open("two.pcapng", "rb") as f:
    print("python-pcapng", *(int(b.timestamp) for b in pcapng.FileScanner(f)
                             if isinstance(b, pcapng.blocks.EnhancedPacket)))
END
expect "seconds" "dpkt 1700000000 1700000001000
scapy 1700000000 1700000001
python-pcapng 1700000000 1700000001" "$(py/bin/python read.py)"
