#!/bin/bash
# One would guess that an answer that breaks off, after half of its Content-Length or without its
# last chunk, is an error in a load generator's report: it is how a server looks that is killed, or
# that a proxy cuts.
#
# hey, ab and siege count each such answer as a success: 200, "Failed requests: 0", "Availability:
# 100.00 %". hey and ab put it among the latencies. wrk and h2load count errors.
#
# hey 0.1.5 (Go), apache2-utils 2.4.71-1~deb12u1, siege 4.0.7-1+b1, wrk 4.1.0-3+b2,
# nghttp2-client 1.52.0-1+deb12u3 (Debian), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get wrk=4.1.0-3+b2 libluajit-5.1-2=2.1.0~beta3+git20220320+dfsg-4.1+deb12u1 \
	nghttp2-client=1.52.0-1+deb12u3 libev4=1:4.33-1 apache2-utils=2.4.71-1~deb12u1 \
	siege=4.0.7-1+b1 libapr1=1.7.2-3+deb12u1 libaprutil1=1.6.3-1+deb12u1
go_get github.com/rakyll/hey@v0.1.5
go build -o hey github.com/rakyll/hey
cat >serve.py <<'PY'
"""serve.py PORT answers /length and /chunked with half of what it announces, and closes."""
import asyncio, sys

async def serve(reader, writer):
    try:
        request = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n")
        if b"/length" in request:
            writer.write(b"Content-Length: 2000\r\n\r\n" + b"x" * 1000)
        else:
            writer.write(b"Transfer-Encoding: chunked\r\n\r\n3e8\r\n" + b"x" * 1000 + b"\r\n")
        await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()

async def listen():
    async with await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1])) as server:
        await server.serve_forever()

asyncio.run(listen())
PY
port=$(free_port)
python3 serve.py "$port" &
wait_port "$port"
touch siegerc
export HOME=$dir
for kind in length chunked; do
	url=http://127.0.0.1:$port/$kind
	echo "ten answers that break off ($kind)"
	expect "  hey" "[200] 10 responses" "$(./hey -n 10 -c 1 "$url" |
		sed -nE 's/.*(\[200\])\s+(.*)/\1 \2/p; s/.*(Error).*/\1/p')"
	expect "  ab" "Complete requests: 10, Failed requests: 0" "$(debian ab -n 10 -c 1 "$url" 2>&1 |
		sed -nE 's/^((Complete|Failed) requests:) +/\1 /p' | paste -sd, | sed 's/,/, /')"
	expect "  siege" "Availability 100.00, Successful 10, Failed 0" "$(debian siege -R siegerc -b \
		-r 10 -c 1 "$url" 2>&1 | sed -nE \
		's/^(Availability|Successful|Failed)[^:]*:\s+([0-9.]+).*/\1 \2/p' | sed -z 's/\n/, /g; s/, $//')"
	debian wrk -c 1 -t 1 -d 1s "$url" >wrk.txt
	expect "  wrk" "0 requests" "$(grep -oE '[0-9]+ requests' wrk.txt)"
	holds "  wrk: read errors" "$(grep -oE 'read [0-9]+' wrk.txt | cut -d' ' -f2) > 0"
	expect "  h2load" "0 succeeded, 10 failed" \
		"$(debian h2load --h1 -n 10 -c 1 "$url" 2>&1 | grep -oE '[0-9]+ succeeded, [0-9]+ failed')"
done
