#!/bin/bash
# One would guess that a server that stops answering for good in the middle of a test shows in a
# load generator's report: as errors, as timeouts, or in the maximum of the latencies.
#
# wrk, h2load and autocannon stop at the end of the test, and leave out what is not answered by
# then: of a server that answers 200 requests within milliseconds, and the four after them never,
# they report 200 requests, no error and no timeout, and latencies of milliseconds, although each of
# the four connections had waited for most of the 3 s. Only the number of requests a second is low.
#
# wrk 4.1.0-3+b2, nghttp2-client 1.52.0-1+deb12u3 (Debian), autocannon 9.0.0 (npm), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get wrk=4.1.0-3+b2 libluajit-5.1-2=2.1.0~beta3+git20220320+dfsg-4.1+deb12u1 \
	nghttp2-client=1.52.0-1+deb12u3 libev4=1:4.33-1
npm_get autocannon@9.0.0
cat >serve.py <<'END'
"""serve.py PORT answers the first 200 requests since the last /count, and no later one."""
import asyncio, sys
count = 0

async def serve(reader, writer):
    global count
    try:
        while True:
            request = await reader.readuntil(b"\r\n\r\n")
            text = b"hello"
            if request.split()[1] == b"/count":
                text, count = b"%d" % count, 0
            else:
                count += 1
                if count > 200:
                    await reader.read()  # until the client leaves
                    break
            writer.write(b"HTTP/1.1 200 X\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()

async def listen():
    async with await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1])) as server:
        await server.serve_forever()

asyncio.run(listen())
END
port=$(free_port)
python3 serve.py "$port" &
wait_port "$port"
url=http://127.0.0.1:$port/
# got prints how many requests the server got.
got() { python3 -c '
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1] + "count").read().decode())' "$url"; }

debian wrk -t1 -c4 -d3 --latency "$url" >wrk
grep -E 'requests in|99%|Socket errors' wrk
expect "wrk: requests; server" "200; 204" \
	"$(sed -nE 's/^ +([0-9]+) requests in.*/\1/p' wrk); $(got)"
expect "  errors and timeouts" 0 "$(grep -c 'Socket errors' wrk || true)"
debian h2load --h1 -c 4 -D 3 "$url" >h2load
grep -E '^(requests|time for request):' h2load
expect "h2load: requests; server" "200; 204" \
	"$(sed -nE 's/^requests: ([0-9]+) total.*/\1/p' h2load); $(got)"
expect "  failed, errored, timeout" "0 failed, 0 errored, 0 timeout" \
	"$(sed -nE 's/^requests:.* succeeded, //p' h2load)"
node_modules/.bin/autocannon -c 4 -d 3 -j "$url" >autocannon 2>/dev/null
figures() { python3 -c '
import functools, json, sys
result = json.load(open("autocannon"))
print(*(functools.reduce(dict.get, name.split("."), result) for name in sys.argv[1:]))' "$@"; }
echo "autocannon: maximum: $(figures latency.max) ms"
expect "autocannon: requests; server" "200; 204" "$(figures requests.total); $(got)"
expect "  errors, timeouts" "0 0" "$(figures errors timeouts)"
holds "  maximum below 2 s" "$(figures latency.max) < 2000"
