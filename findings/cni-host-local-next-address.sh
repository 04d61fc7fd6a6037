#!/bin/bash
# One would guess that host-local, the usual address management of CNI, gives a new container the
# lowest free address: the one that another container has just released.
#
# It goes on after the address that it gave last, until the range is through: a container that is
# made again and again has another address each time, and rules for it fit none of them for long.
#
# containernetworking-plugins 1.1.1+ds1-3+b5 (Debian), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get containernetworking-plugins=1.1.1+ds1-3+b5
cat >conf <<END
{"cniVersion": "1.0.0", "name": "n", "type": "x", "ipam": {"type": "host-local",
	"dataDir": "$dir/data", "ranges": [[{"subnet": "10.9.0.0/29"}]]}}
END
cni() {
	CNI_COMMAND=$1 CNI_CONTAINERID=$2 CNI_NETNS=/dev/null CNI_IFNAME=eth0 CNI_PATH=. \
		"$(find root -name host-local)" <conf | sed -nE 's/.*"address": "([^"]*)".*/\1/p'
}
cni ADD kept >/dev/null
got=$(for n in 1 2 3 4 5; do cni ADD "made$n" && cni DEL "made$n"; done | paste -sd' ')
expect "a container made and removed five times" \
	"10.9.0.3/29 10.9.0.4/29 10.9.0.5/29 10.9.0.6/29 10.9.0.3/29" "$got"
