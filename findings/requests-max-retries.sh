#!/bin/bash
# One would guess that HTTPAdapter(max_retries=3) of requests repeats only "failed DNS lookups,
# socket connections and connection timeouts, never … requests where data has made it to the
# server", as its documentation says.
#
# A GET that the server has read, and answered by closing the connection, is sent four times. So is
# one answered by 503 with Retry-After: requests waits as long as the server asks each time,
# whatever its own timeout is.
#
# requests 2.34.2 (PyPI), urllib3 2.8.0, 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get requests==2.34.2 urllib3==2.8.0
cat >ask.py <<'END'
import http.server, threading, time
import requests
from requests.adapters import HTTPAdapter
got = []

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        got.append(self.path)
        if self.path == "/busy":
            self.send_response(503)
            self.send_header("Retry-After", "2")
            self.send_header("Content-Length", "0")
            self.end_headers()

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("only to failed DNS lookups, socket connections and connection timeouts, never to requests "
      "where data has made it to the server" in " ".join(HTTPAdapter.__doc__.split()))
session = requests.Session()
session.mount("http://", HTTPAdapter(max_retries=3))
for path in "/close", "/busy":
    start = time.monotonic()
    try:
        print(session.get(f"http://127.0.0.1:{server.server_port}{path}", timeout=1))
    except requests.RequestException as e:
        print(type(e).__name__)
    print(got.count(path), time.monotonic() - start > 5)
END
py/bin/python ask.py >seen
expect "the documentation says so" True "$(sed -n 1p seen)"
expect "closed without an answer: result" ConnectionError "$(sed -n 2p seen)"
expect "requests, longer than 5 s" "4 False" "$(sed -n 3p seen)"
expect "503, Retry-After: 2, timeout=1: result" "<Response [503]>" "$(sed -n 4p seen)"
expect "requests, longer than 5 s" "4 True" "$(sed -n 5p seen)"
