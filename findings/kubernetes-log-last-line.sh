#!/bin/bash
# One would guess that following a pod's log with the Python client gives the lines that reading it
# gives.
#
# `Watch().stream(read_namespaced_pod_log, …)` leaves out the last line if it has no line end, as
# where limit_bytes cuts the log; read_namespaced_pod_log itself returns it.
#
# kubernetes 37.0.2 (PyPI), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get kubernetes==37.0.2
cat >follow.py <<'END'
import http.server, threading
from kubernetes import client, watch

class Server(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        log = b"starting\npanic: no database"
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(log)))
        self.end_headers()
        self.wfile.write(log)
    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
configuration = client.Configuration()
configuration.host = f"http://127.0.0.1:{server.server_port}"
read = client.CoreV1Api(client.ApiClient(configuration)).read_namespaced_pod_log
print(read("p", "default").splitlines(), end=" ")
print(list(watch.Watch().stream(read, "p", "default")))
END
expect "read, followed" "['starting', 'panic: no database'] ['starting']" \
	"$(timeout 60 py/bin/python follow.py)"
