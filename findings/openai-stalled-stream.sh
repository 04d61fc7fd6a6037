#!/bin/bash
# One would guess that a timeout of 1 s means the same in OpenAI's clients for Python and Node: of a
# stream that stalls for 6 s after two tokens both raise an error after 1 s.
#
# Python's does. Node's timeout ends when the headers arrive, so it waits for as long as the stream
# stalls, and reports nothing: a server or gateway that stops in the middle keeps its client for
# good.
#
# openai 7.55.0 (npm), openai 3.57.0 (PyPI), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get openai@7.55.0
pip_get openai==3.57.0
port=$(free_port)
cat >serve.py <<'END'
import http.server, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        try:
            for i in range(3):
                time.sleep(6 if i == 2 else 0)
                self.wfile.write(b'data: {"choices":[{"delta":{"content":"%d"}}]}\n\n' % i)
            self.wfile.write(b"data: [DONE]\n\n")
        except OSError:
            pass
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
END
python3 serve.py "$port" &
wait_port "$port"
cat >ask.py <<'END'
import openai, sys, time
client = openai.OpenAI(api_key="x", base_url=f"http://127.0.0.1:{sys.argv[1]}", timeout=1,
                       max_retries=0)
got, pause = "", 0
try:
    for chunk in client.chat.completions.create(model="m", messages=[], stream=True):
        got += chunk.choices[0].delta.content
        last = time.monotonic()
except Exception as e:
    got += " " + type(e).__name__
    pause = time.monotonic() - last
print(got, "early" if pause < 5 else "late")
END
cat >ask.mjs <<'END'
import OpenAI from 'openai'
let got = ''
const client = new OpenAI({ apiKey: 'x', baseURL: `http://127.0.0.1:${process.argv[2]}`,
	timeout: 1000, maxRetries: 0 })
try {
	for await (const chunk of await client.chat.completions.create({ model: 'm', messages: [],
		stream: true })) got += chunk.choices[0].delta.content
} catch (e) {
	got += ' ' + e.constructor.name
}
console.log(got)
END
expect "Python, timeout 1 s" "01 APITimeoutError early" "$(py/bin/python ask.py "$port")"
expect "Node, timeout 1 s" "012" "$(node ask.mjs "$port")"
