#!/bin/bash
# One would guess that a client of an Ollama server reads a stream of JSON lines at the line feeds
# between them: JSON may have any other character in a string as it is.
#
# The Python library also ends a line at U+0085 and U+2028 within a token: the stream fails with a
# JSONDecodeError, after the tokens before it. Without streaming, the same text arrives whole.
#
# ollama 0.6.3 (PyPI), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get ollama==0.6.3
port=$(free_port)
cat >serve.py <<'END'
import http.server, json, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        parts = ["one ", request["messages"][0]["content"], " end"]
        if not request["stream"]:
            parts = ["".join(parts)]
        self.send_response(200)
        self.end_headers()
        for i, part in enumerate(parts):
            line = {"model": "m", "message": {"role": "assistant", "content": part},
                    "done": i == len(parts) - 1}
            self.wfile.write((json.dumps(line, ensure_ascii=False) + "\n").encode())

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
END
cat >read.py <<'END'
import sys, ollama
client = ollama.Client(host="http://127.0.0.1:" + sys.argv[1])
for text in "two", "two\u0085", "two\u2028":
    for stream in False, True:
        got = []
        try:
            answer = client.chat("m", [{"role": "user", "content": text}], stream=stream)
            for part in answer if stream else [answer]:
                got.append(part.message.content)
        except Exception as e:
            got.append(type(e).__name__)
        print(f"{stream}: {ascii(got)}")
END
python3 serve.py "$port" &
wait_port "$port"
expect "streamed or not" "False: ['one two end']
True: ['one ', 'two', ' end']
False: ['one two\\x85 end']
True: ['one ', 'JSONDecodeError']
False: ['one two\\u2028 end']
True: ['one ', 'JSONDecodeError']" "$(py/bin/python read.py "$port")"
