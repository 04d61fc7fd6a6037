#!/bin/bash
# One would guess that CNI's plug-in bandwidth, given a burst of 512 MiB, lets a container send
# 512 MiB before its rate holds, or refuses the burst, whatever the rate is.
#
# It does so at 16 Mbit/s. At 15.5 Mbit/s the burst is 4 MB, at 10 Mbit/s 193 MB, at 1 Mbit/s 21 MB:
# the plug-in computes how long a burst takes at its rate, in units of 64 ns and 32 bits, and loses
# what is beyond 275 s. containerd's CRI gives the plug-in this burst, 2^32 - 1 bits, for each pod
# with the annotation kubernetes.io/ingress-bandwidth.
#
# CNI plug-ins 1.1.1, iproute2 6.1.0-3 (Debian), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get containernetworking-plugins=1.1.1+ds1-3+b5 \
	iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1 libmnl0=1.0.4-3
cat >run.sh <<'END'
unshare -n sleep 100 &
container=/proc/$!/ns/net
until [ "$(readlink $container)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.1; done
export CNI_COMMAND=ADD CNI_CONTAINERID=c CNI_NETNS=$container CNI_PATH=root/usr/lib/cni
for kbits in 1000 10000 15500 16000; do
	ip link add host$kbits type veth peer name eth$kbits netns $!
	CNI_IFNAME=eth$kbits root/usr/lib/cni/bandwidth >/dev/null <<-JSON
		{"cniVersion": "1.0.0", "name": "n", "type": "bandwidth",
		 "ingressRate": ${kbits}000, "ingressBurst": 4294967295,
		 "prevResult": {"cniVersion": "1.0.0", "ips": [], "interfaces": [
		   {"name": "host$kbits"}, {"name": "eth$kbits", "sandbox": "$container"}]}}
	JSON
	tc qdisc show dev host$kbits | grep -o 'rate [^ ]* burst [^ ]*'
done
kill $!
END
own_network run.sh >seen
expect "rates and bursts, of 512 MiB each" "rate 1Mbit burst 21474835b, \
rate 10Mbit burst 193273526b, rate 15500Kbit burst 4294964b, rate 16Mbit burst 512Mb" \
	"$(paste -sd, seen | sed 's/,/, /g')"
