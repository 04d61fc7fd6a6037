#!/bin/bash
# One would guess that a load generator with eight connections to a name with two addresses, such
# as a headless service with two pods, loads both, or that all of them choose alike.
#
# wrk, h2load and ab load one address, whichever the name server puts first. siege, autocannon and
# loadtest ask for the name again: of a name server that puts each first by turns, as cluster DNS
# does, both get about half of the load. What one of the former measures is the capacity of one pod.
#
# wrk 4.1.0-3+b2, nghttp2-client 1.52.0-1+deb12u3, apache2-utils 2.4.71-1~deb12u1, siege 4.0.7-1+b1
# (Debian), autocannon 9.0.0, loadtest 8.2.1 (npm), 2026-12-01
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get wrk=4.1.0-3+b2 libluajit-5.1-2=2.1.0~beta3+git20220320+dfsg-4.1+deb12u1 \
	nghttp2-client=1.52.0-1+deb12u3 libev4=1:4.33-1 apache2-utils=2.4.71-1~deb12u1 \
	siege=4.0.7-1+b1 libapr1=1.7.2-3+deb12u1 libaprutil1=1.6.3-1+deb12u1
npm_get autocannon@9.0.0 loadtest@8.2.1
cat >serve.py <<'PY'
"""Answers on 127.0.0.2 and 127.0.0.3, port 8000, whose name is web.test: each is first by turns.

127.0.0.1:8001 tells how many requests each had since it was last asked."""
import asyncio, socket, struct
addresses, seen, turn = ["127.0.0.2", "127.0.0.3"], {}, 0

async def serve(reader, writer):
    here = writer.get_extra_info("sockname")[0]
    try:
        while request := await reader.readuntil(b"\r\n\r\n"):
            seen[here] = seen.get(here, 0) + 1
            await asyncio.sleep(0.005)
            close = b"HTTP/1.0" in request
            writer.write(b"HTTP/1.%d 200 OK\r\nContent-Length: 5\r\n\r\nhello" % (not close))
            await writer.drain()
            if close:
                break
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()

async def tell(reader, writer):
    writer.write(b"%d %d\n" % tuple(seen.get(a, 0) for a in addresses))
    seen.clear()
    await writer.drain()
    writer.close()

class Names(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, query, client):
        global turn
        end, answers = query.index(b"\0", 12) + 5, []
        if query[end - 4:end - 2] == b"\0\1":
            answers = [b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 0, 4) + socket.inet_aton(a)
                       for a in addresses]
            turn += 1
            if turn % 2:
                answers.reverse()
        self.transport.sendto(query[:2] + struct.pack(">HHHHH", 0x8580, 1, len(answers), 0, 0)
                              + query[12:end] + b"".join(answers), client)

async def main():
    await asyncio.get_running_loop().create_datagram_endpoint(
        Names, local_addr=("127.0.0.1", 53))
    for address in addresses:
        await asyncio.start_server(serve, address, 8000, backlog=1024)
    await asyncio.start_server(tell, "127.0.0.1", 8001)
    open("ready", "w").close()
    await asyncio.Event().wait()

asyncio.run(main())
PY
cat >run.sh <<'END'
ip link set lo up
echo nameserver 127.0.0.1 >resolv.conf
mount --bind resolv.conf /etc/resolv.conf
printf 'hosts: dns\n' >nsswitch.conf
mount --bind nsswitch.conf /etc/nsswitch.conf
export HOME=$PWD LD_LIBRARY_PATH=$(echo root/usr/lib/*-linux-gnu) PATH=$PWD/root/usr/bin:$PATH
touch siegerc
python3 serve.py &
until [ -e ready ]; do sleep 0.1; done
load() {
	"$@" http://web.test:8000/ >"$(basename "$1").txt" 2>&1
	echo "$(basename "$1") $(cat </dev/tcp/127.0.0.1/8001)"
}
load wrk -t 1 -c 8 -d 1
load h2load --h1 -n 80 -c 8
load ab -n 80 -c 8
load siege -R siegerc -b -r 10 -c 8
load node_modules/.bin/autocannon -a 80 -c 8
load node_modules/.bin/loadtest -n 80 -c 8 -k --cores 1
END
unshare -rnmpf --kill-child bash -e run.sh >seen
while read -r tool one other; do
	case $tool in
	wrk | h2load | ab) holds "$tool: $one and $other requests, all to one address" \
		"$one + $other > 40 && $one * $other == 0" ;;
	*) holds "$tool: $one and $other requests, to both" "$one > 20 && $other > 20" ;;
	esac
done <seen
expect "tools" 6 "$(wc -l <seen)"
