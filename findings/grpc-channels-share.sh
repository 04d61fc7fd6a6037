#!/bin/bash
# One would guess that four gRPC channels to a server are four connections: this is how one spreads
# calls over several servers behind one address, or goes past the streams that a connection may
# have, and how a load test gets four connections.
#
# Python's four channels, which are C++'s, and Node's share one connection, to one of the servers,
# if their options are the same. With grpc.use_local_subchannel_pool they have one each.
#
# grpcio 1.85.3 (PyPI), @grpc/grpc-js 1.14.7 (npm), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get @grpc/grpc-js@1.14.7
pip_get grpcio==1.85.3
cat >serve.py <<'PY'
"""serve.py PORT answers each call with the client's address."""
import concurrent.futures, sys, grpc

class Handler(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda _, context: context.peer().encode())

server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
server.add_generic_rpc_handlers((Handler(),))
server.add_insecure_port(f"127.0.0.1:{sys.argv[1]}")
server.start()
server.wait_for_termination()
PY
cat >call.py <<'PY'
"""call.py PORT [own] makes a call on each of four channels, and prints how many connections."""
import sys, grpc
options = [("grpc.use_local_subchannel_pool", 1)] if sys.argv[2:] else []
channels = [grpc.insecure_channel(f"127.0.0.1:{sys.argv[1]}", options) for _ in range(4)]
print(len({c.unary_unary("/s/m")(b"", timeout=20) for c in channels}))
PY
cat >call.js <<'JS'
const grpc = require('@grpc/grpc-js')
const [port, own] = process.argv.slice(2), same = x => x, peers = new Set(), calls = []
for (let i = 0; i < 4; i++) {
	const client = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure(),
		own ? { 'grpc.use_local_subchannel_pool': 1 } : {})
	calls.push(new Promise((resolve, reject) => client.makeUnaryRequest('/s/m', same, same,
		Buffer.alloc(0), (error, peer) => error ? reject(error) : resolve(peers.add(`${peer}`)))))
}
Promise.all(calls).then(() => {
	console.log(peers.size)
	process.exit()
})
JS
port=$(free_port)
py/bin/python serve.py "$port" &
wait_port "$port"
echo "connections of four channels"
expect "Python" 1 "$(py/bin/python call.py "$port")"
expect "Node" 1 "$(node call.js "$port")"
expect "Python, grpc.use_local_subchannel_pool" 4 "$(py/bin/python call.py "$port" own)"
expect "Node, grpc.use_local_subchannel_pool" 4 "$(node call.js "$port" own)"
