#!/bin/bash
# One would guess that gRPC's clients, told to ping every second lest proxies and NAT forget a call
# that is silent, ping every second: some 12 times in 13 s.
#
# Node's does. Python's, which is C++'s, sends three pings in the first seconds and then none,
# because of another setting: grpc.http2.max_pings_without_data, which is 2 by default. With 0 it
# goes on.
#
# grpcio 1.85.3 (PyPI), @grpc/grpc-js 1.14.7 (npm), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get grpcio==1.85.3
npm_get @grpc/grpc-js@1.14.7
server=$(free_port)
cat >serve.py <<'END'
import grpc, sys, time
from concurrent import futures
def quiet(request, context):
    yield b"one"
    time.sleep(14)
    yield b"two"
handler = grpc.method_handlers_generic_handler(
    "s", {"m": grpc.unary_stream_rpc_method_handler(quiet)})
server = grpc.server(futures.ThreadPoolExecutor(4), options=[
    ("grpc.http2.min_ping_interval_without_data_ms", 100), ("grpc.http2.max_ping_strikes", 0),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 100), ("grpc.so_reuseport", 0)])
server.add_generic_rpc_handlers((handler,))
server.add_insecure_port(f"127.0.0.1:{sys.argv[1]}")
server.start()
server.wait_for_termination()
END
# relay.py LISTEN SERVER prints the seconds at which a client sent PING, within 13 s
cat >relay.py <<'END'
import socket, sys, threading, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
client = listener.accept()[0]
server = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
def back():
    while data := server.recv(65536):
        client.sendall(data)
threading.Thread(target=back, daemon=True).start()
start, pings, text = time.monotonic(), [], b""
skip = len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
client.settimeout(0.2)
while time.monotonic() - start < 13:
    try:
        data = client.recv(65536)
    except TimeoutError:
        continue
    if not data:
        break
    server.sendall(data)
    text += data
    if skip and len(text) >= skip:
        text, skip = text[skip:], 0
    while not skip and len(text) >= 9 + int.from_bytes(text[:3]):
        if text[3] == 6 and not text[4] & 1:
            pings.append(round(time.monotonic() - start, 1))
        text = text[9 + int.from_bytes(text[:3]):]
print(*pings)
END
cat >call.py <<'END'
import grpc, sys
options = [("grpc.keepalive_time_ms", 1000), ("grpc.keepalive_timeout_ms", 5000)]
if len(sys.argv) > 2:
    options.append(("grpc.http2.max_pings_without_data", 0))
channel = grpc.insecure_channel(f"127.0.0.1:{sys.argv[1]}", options=options)
for _ in channel.unary_stream("/s/m")(b"x", timeout=13):
    pass
END
cat >call.mjs <<'END'
import { createRequire } from 'node:module'
const grpc = createRequire(import.meta.url)('@grpc/grpc-js')
const client = new grpc.Client('127.0.0.1:' + process.argv[2], grpc.credentials.createInsecure(),
	{ 'grpc.keepalive_time_ms': 1000, 'grpc.keepalive_timeout_ms': 5000 })
const same = (x) => x
client.makeServerStreamRequest('/s/m', same, same, Buffer.from('x'))
	.on('data', () => {}).on('error', () => {})
setTimeout(() => process.exit(), 13000)
END
python=$dir/py/bin/python
"$python" serve.py "$server" &
wait_port "$server"
# pings CLIENT OPTION… prints when a client that was started with a port pinged.
pings() {
	local port relay
	port=$(free_port)
	python3 relay.py "$port" "$server" >pings &
	relay=$!
	sleep 1
	"$@" "$port" >/dev/null 2>&1 &
	wait "$relay"
	cat pings
}
quiet=$(pings "$python" call.py)
holds "Python, default limit: $quiet" "$(wc -w <<<"$quiet") < 5"
endless() { "$python" call.py "$1" 0; }
endless=$(pings endless)
holds "Python, no limit: $endless" "$(wc -w <<<"$endless") > 9"
node=$(pings node call.mjs)
holds "Node: $node" "$(wc -w <<<"$node") > 9"
