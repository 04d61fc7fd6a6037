#!/bin/bash
# One would guess that a rate that tc was given in bits, and prints in bits, is in bits in JSON.
#
# It is in bytes, under the same name: "rate":1000000 for 8 Mbit/s. The latency of 50 ms is 50000.
#
# iproute2 6.1.0-3 (Debian), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1 libmnl0=1.0.4-3
cat >show.sh <<'END'
ip link add v0 type veth peer name v1
tc qdisc add dev v0 root tbf rate 8mbit burst 16kb latency 50ms
tc qdisc show dev v0 root
tc -j qdisc show dev v0 root
END
own_network show.sh >shown
expect "text" "rate 8Mbit burst 16Kb lat 50ms" "$(grep -o 'rate.*[^ ]' shown | head -1)"
expect "JSON" '"rate":1000000,"burst":16384,"lat":50000' "$(grep -o '"rate"[^}]*' shown)"
