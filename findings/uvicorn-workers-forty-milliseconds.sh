#!/bin/bash
# One would guess that uvicorn answers a client on the same machine as quickly with `--workers 2` as
# without: only the processes are more.
#
# With workers each answer on a kept connection takes 40 ms more. uvicorn writes the head and the
# body apart, and without TCP_NODELAY the kernel holds the body back until the client has
# acknowledged the head. asyncio sets TCP_NODELAY on sockets whose protocol is IPPROTO_TCP; that of
# the socket that uvicorn makes for its workers is 0, and the connections' is the same. With uvloop,
# which sets it on all, the answers are quick.
#
# uvicorn 0.54.0, h11 0.16.0, uvloop 0.22.1 (PyPI), Python 3.11, 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get uvicorn==0.54.0 h11==0.16.0 uvloop==0.22.1
cat >app.py <<'PY'
async def app(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200,
                    "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})
PY
cat >ask.py <<'PY'
"""ask.py PORT prints the median of 50 requests on one connection, in milliseconds."""
import http.client, statistics, sys, time
client = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
took = []
for _ in range(50):
    start = time.monotonic()
    client.request("GET", "/")
    client.getresponse().read()
    took.append((time.monotonic() - start) * 1000)
print("%.1f" % statistics.median(took))
PY
for server in '1 asyncio' '2 asyncio' '2 uvloop'; do
	read -r workers loop <<<"$server"
	port=$(free_port)
	py/bin/python -m uvicorn app:app --host 127.0.0.1 --port "$port" --workers "$workers" \
		--loop "$loop" --log-level error &
	wait_port "$port"
	median=$(python3 ask.py "$port")
	echo "$workers workers, $loop: $median ms"
	if [ "$server" = '2 asyncio' ]; then
		holds "over 35 ms" "$median > 35"
	else
		holds "below 35 ms" "$median < 35"
	fi
done
