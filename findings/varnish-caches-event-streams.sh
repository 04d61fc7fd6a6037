#!/bin/bash
# One would guess that a cache does not store an event stream that says nothing of caching: it has
# neither Cache-Control nor Expires nor Last-Modified, and is made for one client.
#
# Varnish stores it for two minutes (default_ttl), and does not ask the server: the second client,
# and all others of these minutes, get the first one's events, all at once. Two who ask at the same
# time share one stream. It obeys the server's `Cache-Control: no-cache`, and passes on each POST.
#
# varnish 7.1.1-2+deb12u1 (Debian), which needs a C compiler, 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get varnish=7.1.1-2+deb12u1 libvarnishapi3=7.1.1-2+deb12u1 libjemalloc2=5.3.0-1
cat >serve.py <<'END'
"""serve.py PORT answers each request with five events, 100 ms apart, that have its number."""
import http.server, itertools, sys, time
numbers = itertools.count(1)

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        number = next(numbers)
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        if self.path == "/no-cache":
            self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for i in range(5):
            self.wfile.write(b"9\r\ndata: %d\n\n\r\n" % number)
            time.sleep(0.1)
        self.wfile.write(b"0\r\n\r\n")

    do_POST = do_GET

    def log_message(self, *_):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
END
server=$(free_port)
proxy=$(free_port)
python3 serve.py "$server" &
wait_port "$server"
debian varnishd -F -j none -n "$dir/v" -a "127.0.0.1:$proxy" -b "127.0.0.1:$server" \
	-s malloc,16m >log 2>&1 &
wait_port "$proxy" || { cat log; exit 1; }
numbers() { curl -s "$@" | awk '/data/ { print $2 }' | paste -sd ' '; }
url=http://127.0.0.1:$proxy
expect "first GET" "1 1 1 1 1" "$(numbers "$url/events")"
curl -s -w '%{time_total}\n' "$url/events" >seen
expect "second GET" "1 1 1 1 1" "$(awk '/data/ { print $2 }' seen | paste -sd ' ')"
holds "it took $(tail -1 seen) s, the first 0.5" "$(tail -1 seen) < 0.45"
numbers "$url/both" >one &
one=$!
numbers "$url/both" >other
wait $one
expect "two GETs at the same time" "2 2 2 2 2 2 2 2 2 2" "$(paste -d ' ' one other)"
expect "first POST" "3 3 3 3 3" "$(numbers -d x "$url/events")"
expect "second POST" "4 4 4 4 4" "$(numbers -d x "$url/events")"
expect "first GET, Cache-Control: no-cache" "5 5 5 5 5" "$(numbers "$url/no-cache")"
expect "second GET, Cache-Control: no-cache" "6 6 6 6 6" "$(numbers "$url/no-cache")"
