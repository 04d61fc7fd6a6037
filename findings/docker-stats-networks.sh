#!/bin/bash
# One would guess that libraries that read Docker's statistics give what a container has received and
# sent on all of its networks, as `docker stats` shows it.
#
# Of a container in two networks systeminformation's netIO, for Node, has the bytes of one of them
# alone, the last in Docker's answer. python-on-whales calls `docker stats`, whose "NET I/O" is
# what was received / what was sent, and swaps the two: net_upload is what the container received.
#
# systeminformation 5.33.23 (npm), python-on-whales 0.81.0 (PyPI), docker.io 20.10.24 (Debian),
# 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get systeminformation@5.33.23
pip_get python-on-whales==0.81.0
deb_get docker.io=20.10.24+dfsg1-1+deb12u1+b6
cat >engine.py <<'PY'
"""engine.py SOCKET answers with the statistics of a container in two networks, as Docker does."""
import http.server, json, socketserver, sys

def network(received, sent):
    return {"rx_bytes": received, "rx_packets": 1, "rx_errors": 0, "rx_dropped": 0,
            "tx_bytes": sent, "tx_packets": 1, "tx_errors": 0, "tx_dropped": 0}

def cpu(n):
    return {"cpu_usage": {"total_usage": n, "usage_in_kernelmode": 0, "usage_in_usermode": n},
            "system_cpu_usage": 9 * n, "online_cpus": 2}

container = "c" * 64
answers = {
    "stats": {"id": container, "name": "/web", "read": "2026-11-30T12:00:01Z",
              "preread": "2026-11-30T12:00:00Z", "pids_stats": {"current": 1},
              "blkio_stats": {}, "cpu_stats": cpu(2000), "precpu_stats": cpu(1000),
              "memory_stats": {"usage": 1000, "limit": 100000, "stats": {}},
              "networks": {"eth0": network(1000, 10000), "eth1": network(2000, 20000)}},
    "json": {"Id": container, "Name": "/web", "RestartCount": 0, "State": {"Status": "running"}},
    "version": {"Version": "20.10.24", "ApiVersion": "1.41", "MinAPIVersion": "1.12"},
}

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.split("?")[0]
        answer = answers.get(path.split("/")[-1], {})
        if path.endswith("/containers/json"):
            answer = [{"Id": container, "Names": ["/web"], "State": "running"}]
        body = json.dumps(answer).encode() + b"\n"
        self.send_response(200)
        self.send_header("Api-Version", "1.41")
        self.send_header("Ostype", "linux")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
    do_HEAD = do_GET

    def address_string(self):
        return ""

    def log_message(self, *_):
        pass

class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

Server(sys.argv[1], Handler).serve_forever()
PY
cat >ask.mjs <<'JS'
import si from 'systeminformation'
const [{ netIO }] = await si.dockerContainerStats('c'.repeat(64))
console.log(`received ${netIO.rx}, sent ${netIO.wx}`)
JS
cat >ask.py <<'PY'
import sys
from python_on_whales import DockerClient
for s in DockerClient(client_call=sys.argv[1:]).stats():
    print(f"upload {s.net_upload}, download {s.net_download}")
PY
export HOME=$dir DOCKER_SOCKET=$dir/engine.sock
docker=("$dir/root/usr/bin/docker" -H "unix://$DOCKER_SOCKET")
python3 engine.py "$DOCKER_SOCKET" &
until [ -S "$DOCKER_SOCKET" ]; do sleep 0.1; done
echo "received 1000 bytes by one network and 2000 by another, sent 10000 and 20000"
expect "docker stats, received / sent" "3kB / 30kB" \
	"$("${docker[@]}" stats --no-stream --no-trunc --format '{{.NetIO}}')"
expect "systeminformation" "received 2000, sent 20000" "$(node ask.mjs)"
expect "python-on-whales" "upload 3000, download 30000" "$(py/bin/python ask.py "${docker[@]}")"
