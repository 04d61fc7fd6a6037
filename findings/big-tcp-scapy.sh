#!/bin/bash
# One would guess that scapy's rdpcap gives each packet of a capture as long as it was captured.
#
# It cuts packets to 65535 bytes, without a warning: of a segment of 100000 bytes (BIG TCP) some
# 65450 are left, in IPv4 as in IPv6. RawPcapReader, asked for more, gives them whole, and so does
# dpkt.
#
# scapy 2.8.0, dpkt 1.9.8 (PyPI), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get scapy==2.8.0 dpkt==1.9.8
python3 "$here/big-tcp.py"
cat >read.py <<'END'
import dpkt
from scapy.all import RawPcapReader, TCP, rdpcap
for name in "jumbo.pcap", "zero.pcap":
    with RawPcapReader(name) as reader:
        raw = len(reader._read_packet(size=200000)[0])
    with open(name, "rb") as file:
        [(_, data)] = dpkt.pcap.Reader(file)
    packet = rdpcap(name)[0]
    print(name, len(packet[TCP].payload), packet.wirelen, raw,
          len(dpkt.ethernet.Ethernet(data).data.data.data))
END
py/bin/python read.py >out
cat out
expect "rdpcap's payload, wirelen, RawPcapReader's packet, dpkt's payload" \
	"jumbo.pcap 65453 100082 100082 100000, zero.pcap 65481 100054 100054 100000" \
	"$(sed -z 's/\n/, /; s/\n$//' out)"
