#!/bin/bash
# One would guess that jc turns both counters of `iptables -L -v` into numbers: iptables shortens
# both with K, M, G, T, and jc's schema has an integer for each.
#
# jc converts the suffix of the bytes and drops that of the packets: 123456 packets of 234567890
# bytes are 123 packets of 235000000 bytes, so a packet has 1.9 MB. With -x, which makes iptables
# print exact numbers, both are right.
#
# jc 1.26.1 (PyPI), iptables 1.8.9-2 (Debian), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get iptables=1.8.9-2 libxtables12=1.8.9-2 libip4tc2=1.8.9-2 libip6tc2=1.8.9-2 \
	libnftnl11=1.2.4-2 libmnl0=1.0.4-3
pip_get jc==1.26.1
cat >run.sh <<'END'
export XTABLES_LIBDIR=$(echo root/usr/lib/*/xtables)
iptables-nft -A FORWARD -c 123456 234567890 -j ACCEPT
iptables-nft -nvL FORWARD >short
iptables-nft -nvxL FORWARD >exact
END
own_network run.sh
read_back() {
	py/bin/jc --iptables <"$1" | python3 -c '
import json, sys
rule = json.load(sys.stdin)[0]["rules"][0]
print(rule["pkts"], rule["bytes"])'
}
expect "iptables -nvL" "123K 235M" "$(awk 'END { print $1, $2 }' short)"
expect "jc of it" "123 235000000" "$(read_back short)"
expect "iptables -nvxL" "123456 234567890" "$(awk 'END { print $1, $2 }' exact)"
expect "jc of it" "123456 234567890" "$(read_back exact)"
