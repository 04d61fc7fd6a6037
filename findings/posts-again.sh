#!/bin/bash
# One would guess that a client of event streams which can POST, for servers of language models,
# does not POST again once an answer is complete: each POST makes the model work.
#
# eventsource-client and event-source-plus do as browsers do with GET: they connect again, after 2 s
# and at once, and post the same body, until the program closes them. That [DONE] came, and that the
# server ended its answer properly, makes no difference.
#
# eventsource-client 1.2.0, event-source-plus 0.1.15 (npm), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get eventsource-client@1.2.0 event-source-plus@0.1.15
port=$(free_port)
cat >serve.py <<'END'
import http.server, sys
count = 0
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        global count
        count += 1
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b"data: one\n\ndata: [DONE]\n\n")
        self.close_connection = True
    def do_GET(self):
        global count
        text, count = b"%d" % count, 0
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
END
python3 serve.py "$port" &
wait_port "$port"
cat >ask.mjs <<'END'
import { createEventSource } from 'eventsource-client'
import { EventSourcePlus } from 'event-source-plus'
const [, , client, url] = process.argv
const body = '{"stream":true}', headers = { 'Content-Type': 'application/json' }
if (client === 'eventsource-client') createEventSource({ url, method: 'POST', body, headers,
	onMessage: () => {} })
else new EventSourcePlus(url, { method: 'post', body, headers }).listen({ onMessage: () => {} })
setTimeout(async () => {
	console.log(await (await fetch(url)).text())
	process.exit()
}, 7000)
END
for client in eventsource-client event-source-plus; do
	posts=$(node ask.mjs "$client" "http://127.0.0.1:$port/")
	holds "$client: $posts POSTs in 7 s" "$posts > 1"
done
