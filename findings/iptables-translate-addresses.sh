#!/bin/bash
# One would guess that a shell that runs iptables-translate's output loads the whole translation.
#
# For two sources and two destinations the output has four commands, but the second and the fourth
# lack the word nft: a shell does not find them, and half of the rules are missing.
#
# iptables 1.8.9-2, nftables 1.0.6-2+deb12u2 (Debian), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get iptables=1.8.9-2 libxtables12=1.8.9-2 libip4tc2=1.8.9-2 libip6tc2=1.8.9-2 \
	nftables=1.0.6-2+deb12u2 libnftables1=1.0.6-2+deb12u2 libnftnl11=1.2.4-2 libmnl0=1.0.4-3
export XTABLES_LIBDIR=$dir/root/usr/lib/$(uname -m)-linux-gnu/xtables
cat >run.sh <<'END_OF_RUN'
rule='-A OUTPUT -s 10.0.0.1,10.0.0.2 -d 10.1.0.1,10.1.0.2 -j DROP'
iptables-nft $rule
nft list ruleset | grep -c drop
nft flush ruleset
nft 'table ip filter { chain OUTPUT { type filter hook output priority filter; }; }'
iptables-translate $rule >translated
cat translated >&2
bash translated >&2 || true
nft list ruleset | grep -c drop
END_OF_RUN
expect "rules by iptables, by its translation" "4 2" "$(own_network run.sh | paste -sd' ')"
