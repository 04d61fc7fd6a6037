#!/bin/bash
# One would guess that curl's time_total, with --retry, is the time that the command took, as it is
# with redirects, whose time it includes.
#
# It is that of the last attempt, without those before and the pauses: a server that answers 503
# twice, each time after 500 ms, and then 200 has a time_total of 0.5 s, and curl takes 3.5 s.
#
# curl 7.88.1-10+deb12u15 (Debian), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get curl=7.88.1-10+deb12u15 libcurl4=7.88.1-10+deb12u15
port=$(free_port)
cat >serve.py <<'END'
import http.server, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    count = 0
    def do_GET(self):
        Handler.count += 1
        time.sleep(0.5)
        self.send_response(503 if Handler.count < 3 else 200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
END
python3 serve.py "$port" &
wait_port "$port"
start=$(date +%s.%N)
seconds=$(debian curl -s -o body --retry 2 --retry-delay 1 -w '%{time_total}\n' \
	"http://127.0.0.1:$port/")
took=$(awk "BEGIN { print $(date +%s.%N) - $start }")
echo "curl took $took s"
holds "time_total is $seconds s" "$seconds < 1 && $took > 3"
