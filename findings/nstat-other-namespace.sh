#!/bin/bash
# One would guess that nstat's "increments since the previous use", within a container's network
# namespace (`ip netns exec`, `nsenter -n`), are those of that namespace.
#
# They are the difference to the namespace where the user last used nstat: the history is one file,
# /tmp/.nstat.u0. After a use in a namespace that sent 30 packets, 50 in another are reported as 20,
# and 10 in a third as none. The absolute values (--ignore) are right.
#
# iproute2 6.1.0-3 (Debian), 2026-11-29; nstat(8), option -a
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1 libmnl0=1.0.4-3
mkdir tmp
cat >run.sh <<'END'
mount --bind tmp /tmp  # this script leaves no history behind
export LD_LIBRARY_PATH=$(echo root/usr/lib/*-linux-gnu)
# sent PACKETS [OPTION] prints what nstat says of a new namespace that sent so many.
sent() {
	unshare -n bash -c "root/bin/ip link set lo up
		for _ in \$(seq $1); do echo x >/dev/udp/127.0.0.1/9; done
		root/usr/bin/nstat $2 UdpOutDatagrams" | awk '/^Udp/ { print $2 }'
}
sent 30
sent 50
sent 50 --ignore
sent 10
END
unshare -rm bash -e run.sh >seen
expect "30 packets" 30 "$(sed -n 1p seen)"
expect "then 50 in another namespace" 20 "$(sed -n 2p seen)"
expect "then 50 in a third, with --ignore" 50 "$(sed -n 3p seen)"
expect "then 10 in a fourth" "" "$(sed -n 4p seen)"
