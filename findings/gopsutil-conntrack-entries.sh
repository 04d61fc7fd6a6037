#!/bin/bash
# One would guess that gopsutil's ConntrackStats(false), the sum over all CPUs, tells how many
# entries the connection table has.
#
# The kernel prints the table's size in each CPU's line, and gopsutil adds the lines up: entries
# times CPUs. lnstat, which sums the other columns too, shows the size.
#
# gopsutil 4.26.10 (Go), iproute2 6.1.0-3, nftables 1.0.6-2+deb12u2 (Debian), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

go_get github.com/shirou/gopsutil/v4@v4.26.10
deb_get iproute2=6.1.0-3 nftables=1.0.6-2+deb12u2 libnftables1=1.0.6-2+deb12u2 \
	libnftnl11=1.2.4-2 libmnl0=1.0.4-3
cat >main.go <<'END'
package main

import (
	"fmt"

	"github.com/shirou/gopsutil/v4/net"
)

func main() {
	all, err := net.ConntrackStats(false)
	each, _ := net.ConntrackStats(true)
	if err != nil {
		panic(err)
	}
	fmt.Println(all[0].Entries, len(each))
}
END
go build -o entries .
cat >connect.py <<'END'
import socket
server = socket.create_server(("127.0.0.1", 8000))
for _ in range(5):
    socket.create_connection(("127.0.0.1", 8000)).close()
END
cat >run.sh <<'END'
ip link set lo up
nft 'add table ip t; add chain ip t c { type filter hook output priority 0; }'
nft add rule ip t c ct state new counter
python3 connect.py
cat /proc/sys/net/netfilter/nf_conntrack_count
lnstat -c 1 -s 0 -k nf_conntrack:entries | tail -1 | tr -dc '0-9\n'
./entries
END
own_network run.sh >found
{ read -r count; read -r lnstat; read -r sum cpus; } <found
expect "the kernel's count, lnstat's entries" "5, 5" "$count, $lnstat"
expect "gopsutil's entries" "$((5 * cpus)), of $cpus CPUs" "$sum, of $cpus CPUs"
