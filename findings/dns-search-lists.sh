#!/bin/bash
# One would guess that a library for DNS that takes its servers from /etc/resolv.conf takes the
# search list, too: with `search prod.test test`, as Kubernetes has one, "web" is web.prod.test.
#
# Node's dns.resolve4, dnspython's resolve and aiodns' query_dns ask for "web" and "web.prod" as
# they stand, and find neither. The C library, Go, Node's dns.lookup and aiodns' getaddrinfo find
# both. So a program that pings or measures a service by one of the former needs another name than
# the client.
#
# dnspython 2.9.2, aiodns 4.0.4, pycares 5.2.1 (PyPI), Node 20, 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get dnspython==2.9.2 aiodns==4.0.4 pycares==5.2.1
cat >serve.py <<'END'
"""serve.py knows web.prod.test, and logs the names that it is asked for."""
import socket, struct
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
open("listening", "w").close()
while True:
    query, client = server.recvfrom(4096)
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode())
        at += query[at] + 1
    name, kind = ".".join(labels).lower(), query[at + 1:at + 3]
    there = name == "web.prod.test"
    with open("asked", "a") as log:
        print(name, "AAAA" if kind == b"\0\x1c" else "A", file=log)
    answer = b"" if not there or kind != b"\0\1" else (
        b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + socket.inet_aton("10.0.0.1"))
    flags = 0x8580 if there else 0x8583
    server.sendto(query[:2] + struct.pack(">HHHHH", flags, 1, bool(answer), 0, 0)
                  + query[12:at + 5] + answer, client)
END
cat >ask.py <<'END'
import asyncio, sys
which, name = sys.argv[1:]
try:
    if which == "dnspython":
        import dns.resolver
        print(dns.resolver.resolve(name, "A")[0])
    else:
        import aiodns
        async def main():
            resolver = aiodns.DNSResolver()
            if which == "aiodns-query":
                return (await resolver.query_dns(name, "A")).answer[0].data.addr
            import socket
            found = await resolver.getaddrinfo(name, family=socket.AF_INET)
            return found.nodes[0].addr[0].decode()
        print(asyncio.run(main()))
except Exception as e:
    print(type(e).__name__)
END
cat >ask.cjs <<'END'
const dns = require('dns').promises
const [which, name] = process.argv.slice(2)
const found = which === 'resolve4' ? dns.resolve4(name).then(a => a[0])
	: dns.lookup(name, 4).then(a => a.address)
found.then(console.log, e => console.log(e.code))
END
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"
	"net"
	"os"
)

func main() {
	resolver := net.Resolver{PreferGo: true}
	found, err := resolver.LookupIP(context.Background(), "ip4", os.Args[1])
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(found[0])
}
END
export GOCACHE=${GOCACHE:-$dir/gocache}
CGO_ENABLED=0 go build -o ask main.go
cat >run.sh <<'END'
ip link set lo up
printf 'nameserver 127.0.0.1\nsearch prod.test test\noptions ndots:2\n' >resolv.conf
mount --bind resolv.conf /etc/resolv.conf
printf 'hosts: dns\n' >nsswitch.conf
mount --bind nsswitch.conf /etc/nsswitch.conf
python3 serve.py &
trap 'kill $!' EXIT
until [ -e listening ]; do sleep 0.1; done
ask() {
	: >asked
	for name in web web.prod; do
		echo "$1 $name $("${@:2}" "$name")" "$(cut -d " " -f 1 asked | uniq | paste -sd,)"
		: >asked
	done
}
ask libc py/bin/python -c 'import socket, sys; print(socket.gethostbyname(sys.argv[1]))'
ask go ./ask
ask node-lookup node ask.cjs lookup
ask node-resolve4 node ask.cjs resolve4
ask dnspython py/bin/python ask.py dnspython
ask aiodns-query py/bin/python ask.py aiodns-query
ask aiodns-getaddrinfo py/bin/python ask.py aiodns-getaddrinfo
END
unshare -rnm bash -e run.sh >seen
for which in libc go node-lookup aiodns-getaddrinfo; do
	expect "$which, web" "10.0.0.1 web.prod.test" "$(sed -n "s/^$which web //p" seen)"
	expect "$which, web.prod" "10.0.0.1 web.prod.prod.test,web.prod.test" \
		"$(sed -n "s/^$which web.prod //p" seen)"
done
for which in node-resolve4 dnspython aiodns-query; do
	error=ENOTFOUND
	[ $which != dnspython ] || error=NXDOMAIN
	[ $which != aiodns-query ] || error=DNSError
	expect "$which, web" "$error web" "$(sed -n "s/^$which web //p" seen)"
	expect "$which, web.prod" "$error web.prod" "$(sed -n "s/^$which web.prod //p" seen)"
done
