#!/bin/bash
# One would guess that a gRPC channel finds a server again whose container was made anew, with another
# address: its connection is closed, the old address refuses, and the name has the new one, TTL 0.
#
# gRPC's clients for Python and Node.js ask for a name once in 30 s at most: of a server that moves
# right after the first call they go on with the old address until 30 s have passed, and each call
# fails. A new channel, in Node.js, reaches the server at once. The option
# grpc.dns_min_time_between_resolutions_ms makes the 30 s shorter.
#
# grpcio 1.85.3 (PyPI), @grpc/grpc-js 1.14.7 (npm), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get grpcio==1.85.3
npm_get @grpc/grpc-js@1.14.7
cat >dns.py <<'PY'
"""dns.py answers each question for an A record with the address in the file "name", TTL 0."""
import socket, struct
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
open("dns", "w").close()  # it listens
while True:
    query, client = server.recvfrom(4096)
    end = query.index(b"\0", 12) + 5
    with open("name") as file:
        address = socket.inet_aton(file.read().strip())
    answer = b"" if query[end - 4:end - 2] != b"\0\1" else (
        b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 0, 4) + address)
    server.sendto(query[:2] + struct.pack(">HHHHH", 0x8580, 1, 1 if answer else 0, 0, 0)
                  + query[12:end] + answer, client)
PY
cat >serve.py <<'PY'
"""serve.py ADDRESS answers each call with ADDRESS."""
import concurrent.futures, grpc, sys
class Any(grpc.GenericRpcHandler):
    def service(self, _):
        return grpc.unary_unary_rpc_method_handler(lambda *_: sys.argv[1].encode())
server = grpc.server(concurrent.futures.ThreadPoolExecutor(4), handlers=[Any()])
server.add_insecure_port(sys.argv[1] + ":5000")
server.start()
open(sys.argv[1], "w").close()
server.wait_for_termination()
PY
cat >ask.py <<'PY'
import grpc, os, sys, time
options = [("grpc.dns_min_time_between_resolutions_ms", 1000)] if sys.argv[1] == "option" else []
call = grpc.insecure_channel("dns:///web.test:5000", options).unary_unary("/s/m")
while True:  # until the servers listen
    try:
        old = call(b"", timeout=9)
        break
    except grpc.RpcError:
        time.sleep(0.1)
start = time.monotonic()
open(sys.argv[1], "w").close()
while not os.path.exists("moved"):
    time.sleep(0.05)
while True:
    try:
        print(sys.argv[1], old.decode(), call(b"", timeout=9).decode(),
              "%.1f" % (time.monotonic() - start), flush=True)
        break
    except grpc.RpcError as e:
        assert e.code() == grpc.StatusCode.UNAVAILABLE
        time.sleep(0.25)
PY
cat >ask.mjs <<'JS'
import fs from 'fs'
import grpc from '@grpc/grpc-js'
const bytes = b => Buffer.from(b)
const sleep = ms => new Promise(done => setTimeout(done, ms))
const call = (client, address) => new Promise((done, fail) => client.makeUnaryRequest('/s/m', bytes,
	bytes, '', { deadline: Date.now() + 9000 }, (e, got) => e ? fail(e) : done(got.toString())))
const make = options =>
	new grpc.Client('dns:///web.test:5000', grpc.credentials.createInsecure(), options)
const client = make({})
const old = await call(client)
const start = Date.now()
fs.writeFileSync('node', '')
while (!fs.existsSync('moved')) await sleep(50)
const fresh = await call(make({}))
console.log('new', old, fresh, (Date.now() - start) / 1000)
for (;;) {
	try {
		const got = await call(client)
		console.log('node', old, got, (Date.now() - start) / 1000)
		process.exit()
	} catch (e) {
		if (e.code !== grpc.status.UNAVAILABLE) throw e
		await sleep(250)
	}
}
JS
cat >run.sh <<'END'
ip link set lo up
echo nameserver 127.0.0.1 >resolv.conf
mount --bind resolv.conf /etc/resolv.conf
echo 127.0.1.2 >name
python3 dns.py &
py/bin/python serve.py 127.0.1.2 & old=$!
py/bin/python serve.py 127.0.1.3 &
until [ -e dns ] && [ -e 127.0.1.2 ] && [ -e 127.0.1.3 ]; do sleep 0.1; done
py/bin/python ask.py python & first=$!
py/bin/python ask.py option & second=$!
node ask.mjs & third=$!
until [ -e python ] && [ -e option ] && [ -e node ]; do sleep 0.1; done
echo 127.0.1.3 >name
kill -9 $old
touch moved
wait $first $second $third
END
unshare -rnmpf --kill-child bash -e run.sh 2>/dev/null >seen
for who in python node option new; do
	read -r _ old new took < <(grep "^$who " seen)
	expect "$who, before and after" "127.0.1.2 127.0.1.3" "$old $new"
	case $who in
	python | node) holds "$who: after $took s" "$took > 25" ;;
	*) holds "$who: after $took s" "$took < 20" ;;
	esac
done
