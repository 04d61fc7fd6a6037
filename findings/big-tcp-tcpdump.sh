#!/bin/bash
# One would guess that a tcpdump that understands BIG TCP of IPv6 (a jumbogram) also understands
# that of IPv4 (total length 0), as in captures on hosts that use both.
#
# It prints the IPv6 segment with its ports and 100000 bytes, and the IPv4 one as `IP bad-len 0`
# without addresses. With a filter it is the other way round: `tcp port 80` selects the IPv4
# segment and not the IPv6 one, whose TCP header lies behind a hop-by-hop header.
#
# tcpdump 4.99.3-1, libpcap 1.10.3-1 (Debian), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get tcpdump=4.99.3-1 libpcap0.8=1.10.3-1
python3 "$here/big-tcp.py"
expect "IPv6" "IP6 2001:db8::1 > 2001:db8::2: HBH 1234 > 80: tcp 100000" \
	"$(debian tcpdump -Z root -tqnr jumbo.pcap 2>/dev/null)"
expect "IPv4" "IP bad-len 0" "$(debian tcpdump -Z root -tnr zero.pcap 2>/dev/null)"
expect "packets that match 'tcp port 80': IPv6, IPv4" "0 1" \
	"$(for f in jumbo zero; do
		debian tcpdump -Z root -nr $f.pcap tcp port 80 2>/dev/null | wc -l
	done | paste -sd' ')"
