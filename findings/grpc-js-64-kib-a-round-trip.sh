#!/bin/bash
# One would guess that a message of 4 MB takes about as long to gRPC's client for Node.js as to that
# for Python, or that at least its HTTP/2 window grows while the message is on the way.
#
# @grpc/grpc-js keeps to 64 KiB, HTTP/2's first window (RFC 9113, 6.9.2), all the time: over a path
# with a round trip of 40 ms it takes over 4 s, 100 round trips, 0.9 MB/s, however quick the path
# is. grpcio, which announces a window of 4 MiB when it connects, takes 0.1 s, and so does grpc-js
# if the channel's option grpc-node.flow_control_window is large.
#
# @grpc/grpc-js 1.14.7 (npm), grpcio 1.85.3 (PyPI), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get @grpc/grpc-js@1.14.7
pip_get grpcio==1.85.3
near=$(free_port) far=$(free_port)
cat >serve.py <<'END'
import sys, time
from concurrent import futures
import grpc

class Handler(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda request, _: bytes(int(request)))

server = grpc.server(futures.ThreadPoolExecutor(4), handlers=[Handler()])
server.add_insecure_port(f"127.0.0.1:{sys.argv[1]}")
server.start()
server.wait_for_termination()
END
cat >get.py <<'END'
import sys, time
import grpc
with grpc.insecure_channel(f"127.0.0.1:{sys.argv[1]}") as channel:
    get = channel.unary_unary("/f/Get")
    get(b"1")
    start = time.monotonic()
    assert len(get(b"4000000")) == 4000000
    print(round(time.monotonic() - start, 2))
END
cat >get.cjs <<'END'
const grpc = require('@grpc/grpc-js')
const client = new grpc.Client(`127.0.0.1:${process.argv[2]}`, grpc.credentials.createInsecure(),
	process.argv[3] ? { 'grpc-node.flow_control_window': +process.argv[3] } : {})
const get = size => new Promise((resolve, reject) => client.makeUnaryRequest('/f/Get', b => b,
	b => b, Buffer.from(size), (error, answer) => error ? reject(error) : resolve(answer)))
get('1').then(async () => {
	const start = performance.now()
	const answer = await get('4000000')
	console.log(((performance.now() - start) / 1000).toFixed(2))
	if (answer.length !== 4000000) process.exit(1)
	client.close()
})
END
py/bin/python serve.py "$near" &
python3 "$here/delay.py" "$far" "$near" &
wait_port "$near" && wait_port "$far"
python=$(py/bin/python get.py "$far")
read -r js < <(node get.cjs "$far")
read -r wide < <(node get.cjs "$far" 16777216)
read -r near < <(node get.cjs "$near")
echo "4 MB over 40 ms: grpcio $python s, grpc-js $js s, with a window of 16 MiB $wide s"
echo "grpc-js without the delay: $near s"
holds "grpc-js over 10 times grpcio's" "$js > 10 * $python"
holds "with the window below half of that, without the delay, too" \
	"$wide < $js / 2 && $near < $js / 2"
