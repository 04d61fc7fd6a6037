#!/bin/bash
# One would guess that the round trips that icmplib's multiping() reports for fifty addresses are
# those of ping(), which takes the addresses one by one.
#
# They are far longer, and the more so the more addresses there are: over loopback, where ping() and
# fping report 0.05 ms, the median of the averages of fifty addresses is 180 ms on two busy CPUs.
# With concurrent_tasks=1 instead of 50, the default, it is 0.1 ms: what multiping() shows is how
# long its tasks wait for each other.
#
# icmplib 3.0.4 (PyPI), fping 5.1-1 (Debian), 2026-12-01
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get icmplib==3.0.4
deb_get fping=5.1-1 iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1 libmnl0=1.0.4-3
cat >ask.py <<'END'
import statistics, sys
from icmplib import multiping, ping
addresses = [f"127.0.0.{i}" for i in range(1, 51)]
for hosts in ([ping(a, count=1) for a in addresses],
              multiping(addresses, count=3, interval=0.5),
              multiping(addresses, count=1, concurrent_tasks=1)):
    assert all(h.is_alive for h in hosts)
    print(statistics.median(h.avg_rtt for h in hosts))
END
cat >run.sh <<'END'
ip link set lo up
py/bin/python ask.py
root/usr/bin/fping -q -c 3 -p 500 -i 1 $(printf '127.0.0.%s ' $(seq 50)) 2>&1 |
	awk -F/ '{ print $(NF - 1) }' | sort -g | sed -n 25p
END
own_network run.sh >seen
{ read -r one && read -r all && read -r turns && read -r fping; } <seen
echo "median of 50 addresses' averages, in ms: ping() $one, multiping() $all," \
	"with one task $turns, fping $fping"
holds "multiping() is over 10 times as long as ping()" "$all > 10 * $one"
holds "multiping() is over 10 times as long as fping" "$all > 10 * $fping"
holds "with one task it is not" "$turns < 10 * $one"
