#!/bin/bash
# One would guess that a client whose server answers 429 with `Retry-After: 90` waits 90 s before
# it asks again, or gives up, and that OpenAI's libraries for two languages do the same.
#
# OpenAI's for Node asks again after half a second, and once more a second later: it obeys the
# header up to 60 s, and takes its own times if it asks for more. So does Groq's for Python. A
# server under load that sends its clients away for longer gets three times the requests at once.
# OpenAI's for Python waits up to two minutes, and gives up if it is asked for more.
#
# openai 7.55.0 (npm), openai 3.57.0, groq 1.7.0 (PyPI), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get openai==3.57.0 groq==1.7.0
npm_get openai@7.55.0
cat >serve.py <<'END'
"""serve.py PORT answers each POST of /SECONDS/NAME/… with 429 and that Retry-After, and writes
NAME and SECONDS."""
import http.server, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        _, seconds, name, *_ = self.path.split("/")
        print(name, seconds, flush=True)
        self.send_response(429)
        self.send_header("Retry-After", seconds)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
END
cat >ask.py <<'END'
import sys, threading, groq, openai
say = [{"role": "user", "content": "hello"}]

def ask(name, make, seconds):
    client = make(base_url=f"{sys.argv[1]}/{seconds}/{name}/", api_key="k")
    try:
        client.chat.completions.create(model="m", messages=say)
    except (openai.RateLimitError, groq.RateLimitError):
        print(name, seconds, "gave up", flush=True)

for seconds in 50, 90, 150:
    for name, make in ("openai-python", openai.OpenAI), ("groq-python", groq.Groq):
        threading.Thread(target=ask, args=(name, make, seconds), daemon=True).start()
threading.Event().wait()
END
cat >ask.mjs <<'END'
import OpenAI from 'openai'
const messages = [{ role: 'user', content: 'hello' }]
for (const seconds of [50, 90, 150]) {
	const baseURL = `${process.argv[2]}/${seconds}/openai-node/`
	new OpenAI({ baseURL, apiKey: 'k' }).chat.completions.create({ model: 'm', messages })
		.catch(() => console.log('openai-node', seconds, 'gave up'))
}
END
port=$(free_port)
python3 serve.py "$port" >seen &
wait_port "$port"
py/bin/python ask.py "http://127.0.0.1:$port" >ends-python &
node ask.mjs "http://127.0.0.1:$port" >ends-node &
for _ in $(seq 60); do
	[ "$(sort -u seen | wc -l)" = 9 ] && break
	sleep 1
done
sleep 15
for name in openai-node groq-python openai-python; do
	requests='1 3 3' ends=90,150
	[ $name != openai-python ] || requests='1 1 1' ends=150
	expect "$name, Retry-After: 50, 90, 150: requests within 15 s" "$requests" \
		"$(for seconds in 50 90 150; do grep -c "^$name $seconds$" seen; done | paste -sd ' ')"
	expect "  gave up at" $ends \
		"$(cat ends-* | awk -v n=$name '$1 == n { print $2 }' | sort -n | paste -sd,)"
done
