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
ip -j link show type veth | python3 -c 'import json, sys; print(*["ifname" in d for d in json.load(sys.stdin)])'
ip -j link show type bond | tr -d ' \n'
echo
ip -j route | tr -d ' '
END
export LD_LIBRARY_PATH=$dir/root/usr/lib/$(uname -m)-linux-gnu
out=$(PATH=$dir/root/bin:$PATH unshare -rn bash -e show.sh)
echo "$out"
holds "an empty object for each of lo, v0, v1 and whatever the kernel adds" \
	"$(sed -n 2p <<<"$out" | grep -o '{}' | wc -l) >= 3"
expect "no routes" "[]" "$(sed -n 3p <<<"$out")"
