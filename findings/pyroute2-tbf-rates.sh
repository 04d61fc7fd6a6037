#!/bin/bash
# One would guess that pyroute2 reads the rate of a token bucket as tc shows it, as it reads that of a
# class of HTB.
#
# For rates from 2^32 bytes a second on, the kernel tells the rate in an attribute of 64 bits, which
# pyroute2 does not know for tbf: 40 Gbit/s and 50 Gbit/s are 4294967295 bytes, that is
# 34.4 Gbit/s, both. Of HTB it reads TCA_HTB_RATE64.
#
# pyroute2 0.9.7 (PyPI), iproute2 6.1.0-3 (Debian), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get pyroute2==0.9.7
deb_get iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1 libmnl0=1.0.4-3
cat >read.py <<'END'
from pyroute2 import IPRoute
with IPRoute() as ip:
    index = ip.link_lookup(ifname="lo")[0]
    found = {}
    for m in [*ip.get_qdiscs(index=index), *ip.get_classes(index)]:
        options = m.get_attr("TCA_OPTIONS")
        if m.get_attr("TCA_KIND") == "tbf" and options:
            rate = options.get_attr("TCA_TBF_PARMS")["rate"]
            found["tbf"] = rate, options.get_attr("TCA_TBF_RATE64")
        elif options and options.get_attr("TCA_HTB_PARMS"):
            rate = options.get_attr("TCA_HTB_PARMS")["rate"]
            found["htb"] = rate, options.get_attr("TCA_HTB_RATE64")
print(*[f"{k} {v[0]} {v[1]}" for k, v in sorted(found.items())])
END
cat >run.sh <<'END'
ip link set lo up
tc qdisc add dev lo root handle 1: htb
tc class add dev lo parent 1: classid 1:1 htb rate 40gbit
tc qdisc add dev lo parent 1:1 handle 2: tbf rate 40gbit burst 1m latency 3ms
tc qdisc show dev lo
py/bin/python read.py
tc qdisc replace dev lo parent 1:1 handle 2: tbf rate 50gbit burst 1m latency 3ms
tc qdisc show dev lo
py/bin/python read.py
END
own_network run.sh 2>/dev/null >seen
for rate in 40 50; do
	expect "tc" "rate ${rate}Gbit" "$(grep -o "rate ${rate}Gbit" seen)"
done
expect "pyroute2 of HTB and tbf with 40 Gbit/s: rate, rate of 64 bits" \
	"htb 4294967295 5000000000 tbf 4294967295 None" "$(grep htb seen | grep -v qdisc | head -1)"
expect "of tbf with 50 Gbit/s" "tbf 4294967295 None" \
	"$(grep -o 'tbf 42.*' seen | tail -1)"
