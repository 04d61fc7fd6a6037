#!/bin/bash
# One would guess that a server leaves an event stream open for as long as the application does,
# also if that says nothing for 15 s, as a model that thinks does: Node's does.
#
# Bun.serve ends the connection after ten seconds without a byte, in the middle of the answer, and
# calls the stream's cancel() as if the client had left; it says so on standard error, once for all
# connections. The setting is idleTimeout, 10 s by default.
#
# bun 1.4.4 (npm @oven/bun-linux-x64-baseline, of x86-64), Node 20, 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get @oven/bun-linux-x64-baseline@1.4.4
cat >bun.js <<'END'
const text = n => new TextEncoder().encode(`data: ${n}\n\n`)
let timer
const source = {
	start(stream) {
		stream.enqueue(text(1))
		timer = setTimeout(() => {
			stream.enqueue(text(2))
			stream.close()
		}, 15000)
	},
	cancel() {
		clearTimeout(timer)
		console.log('cancel()')
	},
}
Bun.serve({
	hostname: '127.0.0.1',
	port: Number(process.argv[2]),
	fetch: () => new Response(new ReadableStream(source),
		{ headers: { 'Content-Type': 'text/event-stream' } }),
})
END
cat >node.js <<'END'
require('http').createServer((request, answer) => {
	answer.writeHead(200, { 'Content-Type': 'text/event-stream' })
	answer.write('data: 1\n\n')
	setTimeout(() => answer.end('data: 2\n\n'), 15000)
}).listen(Number(process.argv[2]), '127.0.0.1')
END
cat >read.py <<'END'
import http.client, sys, time
c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
start, text = time.monotonic(), b""
c.request("GET", "/")
answer = c.getresponse()
try:
    while piece := answer.read1(65536):
        text += piece
    end = "ends"
except (http.client.HTTPException, OSError) as e:
    end = type(e).__name__
print(answer.status, text.count(b"data: "), "events,", end)
print("%.1f" % (time.monotonic() - start), file=sys.stderr)
END
bun=$(free_port) node=$(free_port)
"$(find node_modules -type f -name bun -perm -1)" bun.js "$bun" >bun.out 2>bun.log &
node node.js "$node" &
wait_port "$bun" && wait_port "$node"
expect "Node, two events that are 15 s apart" "200 2 events, ends" \
	"$(python3 read.py "$node" 2>seconds)"
expect "Bun" "200 1 events, IncompleteRead" "$(python3 read.py "$bun" 2>seconds)"
holds "  ended after $(cat seconds) s" "$(cat seconds) >= 9 && $(cat seconds) < 15"
expect "  its stream is told" "cancel()" "$(cat bun.out)"
cat bun.log
