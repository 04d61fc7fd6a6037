#!/bin/bash
# One would guess that hping3's round trips over loopback are some tens of microseconds, as those of
# a connection that is refused there.
#
# They are up to a millisecond more, by turns: on a machine with nothing else to do they fall from
# 1.0 ms by 0.1 ms each to 0.1 ms, and begin anew. What they show is where in a millisecond it sent.
# Of two paths that differ by 0.2 ms it cannot tell which is shorter.
#
# hping3 3.a2.ds2-10, libpcap 1.10.3-1 (Debian), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get hping3=3.a2.ds2-10 libpcap0.8=1.10.3-1 libtcl8.6=8.6.13+dfsg-2 iproute2=6.1.0-3 \
	libbpf1=1:1.1.2-0+deb12u1 libmnl0=1.0.4-3
cat >ask.py <<'END'
import socket, statistics, time
took = []
for _ in range(60):
    start = time.monotonic()
    with socket.socket() as c:
        assert c.connect_ex(("127.0.0.1", 9))
    took.append(time.monotonic() - start)
    time.sleep(0.05)
print("%.2f" % (statistics.median(took) * 1000))
END
cat >run.sh <<'END'
ip link set lo up
python3 ask.py
hping3 -c 60 -i u50000 -S -p 9 127.0.0.1 2>&1
END
own_network run.sh >seen
grep -oP '(?<=rtt=)[\d.]+' seen >rtts
low=$(sort -g rtts | sed -n 10p) high=$(sort -g rtts | sed -n 51p)
echo "median of 60 refused connections: $(head -1 seen) ms"
echo "of 60 round trips of hping3 some: $(sed -n 21,40p rtts | paste -sd ' ')"
holds "the tenth from above is over 0.4 ms longer than the tenth from below" "$high > $low + 0.4"
