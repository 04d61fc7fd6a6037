#!/bin/bash
# One would guess that urllib3's request("GET", url, timeout=1) ends after about a second, or after
# four of them, as three retries are its default; requests, which is built on it, ends at once with
# what the server has said.
#
# An answer of 503 with `Retry-After: 3` takes 9 s: urllib3 sleeps for as long as the
# server says, three times, and the timeout is that of each attempt. The server gets four requests,
# and may ask for an hour. The same goes for what is built on urllib3 without requests: Kubernetes'
# client for Python, with _request_timeout=1.
#
# urllib3 2.8.0, kubernetes 37.0.2, requests 2.34.2 (PyPI), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get urllib3==2.8.0 kubernetes==37.0.2 requests==2.34.2
cat >serve.py <<'PY'
"""serve.py PORT is busy, and notes each request in the file `requests`."""
import http.server, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open("requests", "a") as file:
            file.write("x")
        self.send_response(503)
        self.send_header("Retry-After", "3")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
PY
cat >ask.py <<'PY'
"""ask.py URL prints each client's status, its requests, and how many seconds they took."""
import os, sys, time, kubernetes, requests, urllib3
url = sys.argv[1]
api = kubernetes.client.CoreV1Api(kubernetes.client.ApiClient(
    kubernetes.client.Configuration(host=url)))

def pods():
    try:
        api.list_namespaced_pod("default", _request_timeout=1)
    except kubernetes.client.ApiException as e:
        return e.status

for name, ask in (("requests", lambda: requests.get(url, timeout=1).status_code),
                  ("urllib3", lambda: urllib3.request("GET", url, timeout=1).status),
                  ("kubernetes", pods)):
    open("requests", "w").close()
    start = time.monotonic()
    status = ask()
    print(name, status, os.path.getsize("requests"), round(time.monotonic() - start), flush=True)
PY
port=$(free_port)
python3 serve.py "$port" &
wait_port "$port"
py/bin/python ask.py "http://127.0.0.1:$port" >seen
expect "statuses and requests" "requests 503 1, urllib3 503 4, kubernetes 503 4" \
	"$(cut -d' ' -f1-3 seen | sed -z 's/\n/, /g; s/, $//')"
seconds() { sed -nE "s/^$1 .* //p" seen; }
holds "requests: $(seconds requests) s" "$(seconds requests) < 4"
holds "urllib3: $(seconds urllib3) s" "$(seconds urllib3) >= 9"
holds "kubernetes: $(seconds kubernetes) s" "$(seconds kubernetes) >= 9"
