#!/bin/bash
# One would guess that h2load's "time to 1st byte" is that of its requests, as the line "time for
# request" above it is: how long clients of a model wait for the first token.
#
# It is that of the first request of each connection alone. Of twenty requests over two connections,
# of which all but the first two wait for 0.2 s, it has a mean of some milliseconds. h2load's manual
# says "time taken to get 1st byte from a server"; that connections are counted, not requests, shows
# in what it says of the deviation.
#
# nghttp2-client 1.52.0-1+deb12u3 (Debian), 2026-12-01
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get nghttp2-client=1.52.0-1+deb12u3 libev4=1:4.33-1
port=$(free_port)
cat >serve.py <<'END'
"""serve.py PORT answers the first request of a connection at once, and others after 0.2 s."""
import http.server, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked = False
    def do_GET(self):
        time.sleep(0.2 * self.asked)
        self.asked = True
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
END
python3 serve.py "$port" &
wait_port "$port"
debian h2load --h1 -n 20 -c 2 "http://127.0.0.1:$port/" >out
expect "requests" "20 succeeded" "$(grep -o '[0-9]* succeeded' out)"
# values WORDS prints the minimum, maximum and mean of a line in milliseconds.
values() {
	grep "^$1" out | grep -oE '[0-9.]+(us|ms|s)\b' | head -3 |
		awk '{ print $1 * (/us/ ? 0.001 : /ms/ ? 1 : 1000) }' | paste -sd ' '
}
read -r _ most mean <<<"$(values 'time for request')"
echo "time for request: at most $most ms, mean $mean ms"
holds "the mean of requests is above 150 ms" "$mean > 150"
read -r _ most mean <<<"$(values 'time to 1st byte')"
echo "time to 1st byte: at most $most ms, mean $mean ms"
holds "the mean of first bytes is below 100 ms" "$mean > 0 && $mean < 100"
