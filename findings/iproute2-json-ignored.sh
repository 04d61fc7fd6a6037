#!/bin/bash
# One would guess that -j makes tools of iproute2 print JSON, or fail where they cannot.
#
# `tc -j class show`, `ip -j mptcp limits` and `ip -j xfrm state count` print the same text as
# without -j, and exit with 0, while `tc -j qdisc show` and `ip -j mptcp endpoint` print JSON.
#
# iproute2 6.1.0-3 (Debian), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1 libmnl0=1.0.4-3
cat >show.sh <<'END'
ip link add v0 type veth peer name v1
ip link set v0 up
tc qdisc add dev v0 root handle 1: htb
tc class add dev v0 parent 1: classid 1:1 htb rate 8mbit
show() {
	"$@" >out
	python3 -m json.tool out >/dev/null 2>&1 && echo "$*: JSON" || echo "$*: $(head -1 out)"
}
show tc -j qdisc show dev v0
show tc -j class show dev v0
show ip -j mptcp endpoint
show ip -j mptcp limits
show ip -j xfrm state count
END
own_network show.sh >shown
cat shown
expect "those that print JSON" "tc -j qdisc show dev v0: JSON, ip -j mptcp endpoint: JSON" \
	"$(grep 'JSON$' shown | sed -z 's/\n/, /; s/\n$//')"
expect "those that do not" 3 "$(grep -cv 'JSON$' shown)"
