#!/bin/bash
# One would guess that wrk's latencies are those of the requests that it sent.
#
# For each answer that took over twice the average wrk adds several of requests that it never sent,
# to make up for those that would have waited if the requests had kept a schedule. That is
# deliberate: it is meant against "coordinated omission" (wg/wrk issue 326, and 485 on whether it is
# right). But its output, help and README do not say so, and it cannot be turned off: of a server
# whose every tenth answer takes 100 ms and all others less than 1 ms, the p75 is about 50 ms, and
# the average a multiple of the time that a connection spent on a request. Its figures cannot be
# compared with those of tools that report what they measured.
#
# wrk 4.1.0-3+b2 (Debian), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get wrk=4.1.0-3+b2 libluajit-5.1-2=2.1.0~beta3+git20220320+dfsg-4.1+deb12u1
port=$(free_port)
cat >serve.py <<'END'
import asyncio, sys

async def serve(reader, writer):
    count = 0
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            count += 1
            if count % 10 == 0:
                await asyncio.sleep(0.1)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def listen():
    async with await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1])) as server:
        await server.serve_forever()

asyncio.run(listen())
END
cat >ask.py <<'END'
import http.client, statistics, sys, time
connection, took = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1])), []
for _ in range(200):
    start = time.monotonic()
    connection.request("GET", "/")
    connection.getresponse().read()
    took.append((time.monotonic() - start) * 1000)
print(*(round(t, 2) for t in (statistics.quantiles(took, n=4)[2], statistics.mean(took))))
END
python3 serve.py "$port" &
wait_port "$port"
read -r p75 average < <(python3 ask.py "$port")
echo "of a client's 200 requests: p75 $p75 ms, average $average ms"
debian wrk -c 1 -t 1 -d 5s --latency "http://127.0.0.1:$port/" | tee wrk.txt
# ms TIME prints a time of wrk's in milliseconds.
ms() { sed -E 's/us$/ 0.001/; s/ms$/ 1/; s/([0-9])s$/\1 1000/' <<<"$1" | awk '{ print $1 * $2 }'; }
wrk75=$(ms "$(awk '$1 == "75%" { print $2 }' wrk.txt)")
wrkaverage=$(ms "$(awk '$1 == "Latency" && $2 ~ /^[0-9]/ { print $2 }' wrk.txt)")
rate=$(awk '/^Requests\/sec/ { print $2 }' wrk.txt)
holds "the client's p75 below 10 ms" "$p75 < 10"
holds "wrk's p75 over 30 ms" "$wrk75 > 30"
holds "wrk's average over 1.5 times the time of its one connection for a request" \
	"$wrkaverage > 1.5 * 1000 / $rate"
