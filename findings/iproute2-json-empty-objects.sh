#!/bin/bash
# One would guess that `ip -j link show type bond` on a machine without a bond prints [], as
# `ip -j route` does for no routes, and that the length of the list is the number of bonds.
#
# It prints an empty object for each device that does not match: [{},{},{}].
#
# iproute2 6.1.0-3 (Debian), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1 libmnl0=1.0.4-3
cat >show.sh <<'END'
ip link add v0 type veth peer name v1
ip -j link show type bond | tr -d ' \n'
echo
ip -j route | tr -d ' '
END
out=$(own_network show.sh)
echo "$out"
holds "an empty object for each of lo, v0, v1 and whatever the kernel adds" \
	"$(sed -n 1p <<<"$out" | grep -o '{}' | wc -l) >= 3"
expect "no routes" "[]" "$(sed -n 2p <<<"$out")"
