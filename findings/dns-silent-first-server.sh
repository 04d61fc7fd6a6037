#!/bin/bash
# One would guess that a resolver that has waited for the first name server of /etc/resolv.conf in
# vain asks the second, and goes on with that one, at least for a while.
#
# The C library and Go wait 5 s for the first server again with each name, as long as the program
# runs, and dnspython 2 s, also dns.resolver.resolve, whose default resolver is the same object each
# time. Node's dns.resolve4 and aiodns, both on c-ares, wait some 2 s once: the next names take the
# second server at once. A service on the former is slow throughout, one on the latter for one name.
#
# dnspython 2.9.2, aiodns 4.0.4, pycares 5.2.1 (PyPI), Node 20, Go 1.26, 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get dnspython==2.9.2 aiodns==4.0.4 pycares==5.2.1
cat >serve.py <<'END'
"""serve.py answers at 127.0.0.2, and is silent at 127.0.0.1."""
import socket, struct
silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
silent.bind(("127.0.0.1", 53))
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.2", 53))
open("listening", "w").close()
while True:
    query, client = server.recvfrom(4096)
    end = query.index(b"\0", 12) + 5
    answer = b"" if query[end - 4:end - 2] != b"\0\1" else (
        b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + socket.inet_aton("10.0.0.1"))
    server.sendto(query[:2] + struct.pack(">HHHHH", 0x8580, 1, bool(answer), 0, 0)
                  + query[12:end] + answer, client)
END
cat >ask.py <<'END'
import asyncio, socket, sys, time
which = sys.argv[1]

async def main():
    if which == "aiodns":
        import aiodns
        resolver = aiodns.DNSResolver()
    elif which == "dnspython":
        import dns.resolver
    for i in range(4):
        start = time.monotonic()
        name = f"n{i}.test"
        try:
            if which == "aiodns":
                await resolver.query_dns(name, "A")
            elif which == "dnspython":
                dns.resolver.resolve(name, "A")
            else:
                socket.gethostbyname(name)
            text = ""
        except Exception as e:
            text = " " + type(e).__name__
        print("%.1f%s" % (time.monotonic() - start, text), end=" ")

asyncio.run(main())
END
cat >ask.cjs <<'END'
const dns = require('dns').promises
async function main() {
	for (let i = 0; i < 4; i++) {
		const start = performance.now()
		const text = await dns.resolve4(`n${i}.test`).then(() => '', e => ' ' + e.code)
		process.stdout.write(((performance.now() - start) / 1000).toFixed(1) + text + ' ')
	}
}
main()
END
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"
	"net"
	"time"
)

func main() {
	resolver := net.Resolver{PreferGo: true}
	for i := range 4 {
		start := time.Now()
		_, err := resolver.LookupIP(context.Background(), "ip4", fmt.Sprintf("n%d.test", i))
		fmt.Printf("%.1f ", time.Since(start).Seconds())
		if err != nil {
			fmt.Print(err, " ")
		}
	}
}
END
export GOCACHE=${GOCACHE:-$dir/gocache}
CGO_ENABLED=0 go build -o ask main.go
cat >run.sh <<'END'
ip link set lo up
printf 'nameserver 127.0.0.1\nnameserver 127.0.0.2\n' >resolv.conf
mount --bind resolv.conf /etc/resolv.conf
printf 'hosts: dns\n' >nsswitch.conf
mount --bind nsswitch.conf /etc/nsswitch.conf
python3 serve.py &
server=$!
trap 'kill $server' EXIT
until [ -e listening ]; do sleep 0.1; done
pids=()
ask() { echo "$1 $("${@:2}")" & pids+=($!); }
ask libc py/bin/python ask.py libc
ask go ./ask
ask node node ask.cjs
ask dnspython py/bin/python ask.py dnspython
ask aiodns py/bin/python ask.py aiodns
wait "${pids[@]}"
END
unshare -rnm bash -e run.sh >seen
echo "seconds that four names took, one after the other"
for which in libc go dnspython node aiodns; do
	took=$(sed -n "s/^$which //p" seen)
	echo "$which: $took"
	read -r first second third fourth <<<"$took"
	holds "  the first over 1.5" "$first > 1.5"
	case $which in
	node | aiodns) holds "  the others below 1" "$second < 1 && $third < 1 && $fourth < 1" ;;
	*) holds "  the others, too" "$second > 1.5 && $third > 1.5 && $fourth > 1.5" ;;
	esac
done
