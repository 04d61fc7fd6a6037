#!/bin/bash
# One would guess that iptables-translate's rule for `-m time` matches at the same hours.
#
# iptables takes the hours as UTC, nft as local time of the shell that loads the rule: twelve hours
# west of Greenwich a rule for the present half of the day becomes one for the other half.
#
# iptables 1.8.9-2, nftables 1.0.6-2+deb12u2 (Debian), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get iptables=1.8.9-2 libxtables12=1.8.9-2 libip4tc2=1.8.9-2 libip6tc2=1.8.9-2 \
	nftables=1.0.6-2+deb12u2 libnftables1=1.0.6-2+deb12u2 libnftnl11=1.2.4-2 libmnl0=1.0.4-3 \
	iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1
export XTABLES_LIBDIR=$dir/root/usr/lib/$(uname -m)-linux-gnu/xtables
cat >run.sh <<'END_OF_RUN'
from=00:00 until=11:59:59
[ "$(date -u +%-H)" -lt 12 ] || { from=12:00 && until=23:59:59; }
rule="-A OUTPUT -m time --timestart $from --timestop $until"
ip link set lo up
send() {
	python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 0))
s.sendto(b"x", s.getsockname())'
}
export TZ=WEST+12
iptables-nft $rule
send
iptables-nft -nvL OUTPUT | awk '/UTC/ { print $1 }'
nft flush ruleset
nft 'table ip filter { chain OUTPUT { type filter hook output priority filter; }; }'
translated=$(iptables-translate $rule)
echo "$translated" >&2
eval "$translated"
send
nft list ruleset | sed -nE 's/.*hour.* packets ([0-9]+) .*/\1/p'
TZ=UTC nft list ruleset | grep hour >&2
END_OF_RUN
expect "packets in the hours: iptables, nft" "1 0" "$(own_network run.sh | paste -sd' ')"
