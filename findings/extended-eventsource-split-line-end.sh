#!/bin/bash
# One would guess that what a client of event streams delivers does not depend on where the network
# cuts the stream.
#
# extended-eventsource takes a line end of two characters (CR LF, as sse-starlette sends it) for two
# if they arrive in different pieces: the listener gets an empty message more, and two lines of data
# become two messages. In one piece the same bytes are read well; eventsource reads both.
#
# extended-eventsource 2.1.0, eventsource 5.1.5 (npm), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get extended-eventsource@2.1.0 eventsource@5.1.5
port=$(free_port)
cat >serve.py <<'END'
import http.server, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for piece in (b"data: one\r", b"\ndata: two\r\n\r", b"\n", b"data: three\r\n\r\n"):
            self.wfile.write(piece)
            time.sleep(0.2 if self.path == "/pieces" else 0)
        time.sleep(1)
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
END
python3 serve.py "$port" &
wait_port "$port"
cat >read.mjs <<'END'
const [, , name, url] = process.argv
const { EventSource } = await import(name)
const got = []
const source = new EventSource(url)
source.onmessage = (e) => {
	got.push(e.data)
	if (e.data === 'three') setTimeout(() => {
		console.log(JSON.stringify(got))
		process.exit()
	}, 100)
}
END
read_all() { node read.mjs "$1" "http://127.0.0.1:$port/$2"; }
expect "extended-eventsource" '["one\ntwo","three"]' "$(read_all extended-eventsource whole)"
expect "extended-eventsource, in pieces" '["one","two","","three"]' \
	"$(read_all extended-eventsource pieces)"
expect "eventsource, in pieces" '["one\ntwo","three"]' "$(read_all eventsource pieces)"
