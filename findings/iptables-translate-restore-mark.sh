#!/bin/bash
# One would guess that iptables-translate's rule does to a packet what the given rule does.
#
# `CONNMARK --restore-mark` with masks replaces the masked bits of the packet's mark and keeps the
# others. The translation sets the whole mark: a packet with mark 0x4000 keeps it with iptables, and
# loses it with nft.
#
# iptables 1.8.9-2, nftables 1.0.6-2+deb12u2 (Debian), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get iptables=1.8.9-2 libxtables12=1.8.9-2 libip4tc2=1.8.9-2 libip6tc2=1.8.9-2 \
	nftables=1.0.6-2+deb12u2 libnftables1=1.0.6-2+deb12u2 libnftnl11=1.2.4-2 libmnl0=1.0.4-3 \
	iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1
export XTABLES_LIBDIR=$dir/root/usr/lib/$(uname -m)-linux-gnu/xtables
cat >run.sh <<'END_OF_RUN'
rule='-A OUTPUT -j CONNMARK --restore-mark --nfmask 0xf --ctmask 0xf'
ip link set lo up
send() {
	python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 0))
s.sendto(b"x", s.getsockname())'
}
iptables-nft -t mangle -A OUTPUT -j MARK --set-mark 0x4000
iptables-nft -t mangle $rule
iptables-nft -t mangle -A OUTPUT -m mark --mark 0x4000
send
iptables-nft -t mangle -nvL OUTPUT | awk '/mark match/ { print $1 }'
nft flush ruleset
nft 'table ip mangle { chain OUTPUT { type filter hook output priority mangle;
	meta mark set 0x4000; }; }'
translated=$(iptables-translate -t mangle $rule)
echo "$translated" >&2
eval "$translated"
nft 'add rule ip mangle OUTPUT meta mark 0x4000 counter'
send
nft list ruleset | sed -nE 's/.*mark 0x00004000 counter packets ([0-9]+) .*/\1/p'
END_OF_RUN
expect "packets that keep 0x4000: iptables, nft" "1 0" "$(own_network run.sh | paste -sd' ')"
