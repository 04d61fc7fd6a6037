#!/bin/bash
# One would guess that jc's list of `ip route` has the destination of each route, and that a
# multipath route is one entry.
#
# "blackhole" and "unreachable" stand where the destination should be, which is lost, as is the MTU
# of a route. The paths of a multipath route are entries of their own, whose destination is
# "nexthop". `ip -j route` has all of it.
#
# jc 1.26.1 (PyPI), iproute2 6.1.0-3 (Debian), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1 libmnl0=1.0.4-3
pip_get jc==1.26.1
cat >run.sh <<'END'
ip link add e0 type veth peer name e1
ip link set e0 up
ip addr add 10.9.0.2/24 dev e0
ip route add blackhole 10.6.0.0/24
ip route add unreachable 10.5.0.0/24 metric 5
ip route add 10.8.0.0/24 via 10.9.0.1 mtu 1400
ip route add 10.7.0.0/24 nexthop via 10.9.0.1 nexthop via 10.9.0.4
ip route >text
ip -j route >json
END
own_network run.sh
cat >list.py <<'END'
import json, sys
key, mtu = sys.argv[1:]
routes = json.load(sys.stdin)
print(*sorted(r[key] for r in routes), "MTU" if mtu in json.dumps(routes) else "no MTU")
END
expect "ip -j route" "10.5.0.0/24 10.6.0.0/24 10.7.0.0/24 10.8.0.0/24 10.9.0.0/24 MTU" \
	"$(python3 list.py dst 1400 <json)"
expect "jc of ip route" \
	"10.7.0.0/24 10.8.0.0/24 10.9.0.0/24 blackhole nexthop nexthop unreachable no MTU" \
	"$(py/bin/jc --ip-route <text | python3 list.py ip 1400)"
