#!/bin/bash
# One would guess that `conntrack -R` restores the entries that `conntrack -L -o save` wrote down.
#
# They come back without their marks: -o save prints none, although `conntrack -L` and -o xml do.
# Rules that route or filter by the mark of a connection no longer apply to them.
#
# conntrack 1.4.7-1+b2, nftables 1.0.6-2+deb12u2 (Debian), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get conntrack=1:1.4.7-1+b2 libnetfilter-conntrack3=1.0.9-3 libnfnetlink0=1.0.2-2 \
	nftables=1.0.6-2+deb12u2 libnftables1=1.0.6-2+deb12u2 libnftnl11=1.2.4-2 libmnl0=1.0.4-3 \
	iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1
cat >run.sh <<'END_OF_RUN'
ip link set lo up
nft 'table ip t { chain c { type filter hook output priority -150; ct mark set 17; }; }'
python3 -c '
import socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 0))
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.sendto(b"x", server.getsockname())'
marks() { conntrack -L -o xml 2>/dev/null | grep -o '<mark>[0-9]*' | cut -d'>' -f2; }
marks
conntrack -L -o save >saved 2>/dev/null
cat saved >&2
conntrack -F 2>/dev/null
conntrack -R saved >&2
marks
END_OF_RUN
expect "marks before saving and after restoring" "17 0" \
	"$(own_network run.sh | paste -sd' ')"
