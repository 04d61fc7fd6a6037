#!/bin/bash
# One would guess that a service config with "maxAttempts": 10 lets gRPC call up to ten times while
# the server is UNAVAILABLE, or is refused.
#
# Node's client and Python's, which is C++'s, call five times: they take more than five for five,
# as gRFC A6, the design of retries, asks. Node has the channel option
# grpc-node.retry_max_attempts_limit for more.
#
# @grpc/grpc-js 1.14.7 (npm), grpcio 1.85.3 (PyPI), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get @grpc/grpc-js@1.14.7
pip_get grpcio==1.85.3
cat >config.json <<'END'
{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 10, "initialBackoff": "0.01s",
 "maxBackoff": "0.01s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}
END
cat >serve.py <<'END'
"""serve.py PORT is UNAVAILABLE, and notes each call in the file `calls`."""
import concurrent.futures, sys, grpc

class Handler(grpc.GenericRpcHandler):
    def service(self, details):
        def call(request, context):
            with open("calls", "ab") as f:
                f.write(b"x")
            context.abort(grpc.StatusCode.UNAVAILABLE, "busy")
        return grpc.unary_unary_rpc_method_handler(call)

server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
server.add_generic_rpc_handlers((Handler(),))
server.add_insecure_port(f"127.0.0.1:{sys.argv[1]}")
server.start()
server.wait_for_termination()
END
cat >call.py <<'END'
import sys, grpc
channel = grpc.insecure_channel(f"127.0.0.1:{sys.argv[1]}",
                                [("grpc.service_config", open("config.json").read())])
try:
    channel.unary_unary("/s/m")(b"", timeout=20)
except grpc.RpcError as e:
    print(e.code().name)
END
cat >call.js <<'END'
const grpc = require('@grpc/grpc-js'), fs = require('fs')
const [port, limit] = process.argv.slice(2), same = x => x
const client = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure(), {
	'grpc.service_config': fs.readFileSync('config.json', 'utf8'),
	...(limit && { 'grpc-node.retry_max_attempts_limit': Number(limit) }) })
const options = { deadline: Date.now() + 20000 }
client.makeUnaryRequest('/s/m', same, same, Buffer.alloc(0), options, error => {
	console.log(grpc.status[error.code])
	process.exit()
})
END
port=$(free_port)
py/bin/python serve.py "$port" &
wait_port "$port"
# calls PROGRAM ARGUMENT… prints the status, and how many calls the server got.
calls() {
	: >calls
	echo "$("$@" 2>>errors) $(stat -c %s calls)"
}
expect "Python" "UNAVAILABLE 5" "$(calls py/bin/python call.py "$port")"
expect "Node" "UNAVAILABLE 5" "$(calls node call.js "$port")"
expect "Node, retry_max_attempts_limit" "UNAVAILABLE 10" "$(calls node call.js "$port" 10)"
