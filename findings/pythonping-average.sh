#!/bin/bash
# One would guess that the average round trip of a library's ping is that of the answers that came,
# as ping prints it.
#
# pythonping counts its timeout for an echo that was lost: of four on the loopback device, one of
# which is lost, the average is 500 ms, and the maximum 2000. icmplib's is a fraction of a
# millisecond.
#
# pythonping 1.1.4, icmplib 3.0.4 (PyPI), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get nftables=1.0.6-2+deb12u2 libnftables1=1.0.6-2+deb12u2 libnftnl11=1.2.4-2 libmnl0=1.0.4-3
pip_get pythonping==1.1.4 icmplib==3.0.4
cat >ping.py <<'END'
import icmplib, pythonping
r = pythonping.ping("127.0.0.1", count=4, timeout=2)
print(r.rtt_avg_ms, r.rtt_max_ms, r.packet_loss)
r = icmplib.ping("127.0.0.1", count=4, timeout=2, interval=0.2)
print(r.avg_rtt, r.max_rtt, r.packet_loss)
END
cat >run.sh <<'END'
ip link set lo up
nft 'table inet t { chain c { type filter hook input priority 0;
	icmp type echo-request numgen inc mod 4 == 1 drop; }; }'
py/bin/python ping.py
END
own_network run.sh >out
{ read -r average most loss && read -r right _ same; } <out
expect "loss" "0.25 0.25" "$loss $same"
holds "pythonping: average $average, maximum $most ms" "$average > 499 && $most == 2000"
holds "icmplib: average $right ms" "$right < 100"
