#!/bin/bash
# One would guess that LiteLLM passes a model's stream on, whatever its tokens are.
#
# After 100 chunks with the same text it raises MidStreamFallbackError: of a line of 120 times
# "----", such as models draw tables with, 100 arrive. The openai library, which LiteLLM uses for
# it, gives all.
#
# litellm 1.110.2, openai 3.57.0 (PyPI), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get litellm==1.110.2 openai==3.57.0
export LITELLM_LOCAL_MODEL_COST_MAP=True # asks no server for prices
port=$(free_port)
cat >serve.py <<'END'
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for i in range(121):
            choice = {"index": 0, "delta": {"content": "----"}}
            if i == 120:
                choice = {"index": 0, "delta": {}, "finish_reason": "stop"}
            self.wfile.write(b"data: " + json.dumps({"id": "c", "object": "chat.completion.chunk",
                "created": 1, "model": "m", "choices": [choice]}).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
END
python3 serve.py "$port" &
wait_port "$port"
cat >ask.py <<'END'
import sys
def litellm(url):
    import litellm
    return litellm.completion(model="openai/m", api_base=url, api_key="x", stream=True,
                              messages=[{"role": "user", "content": "a table"}])
def openai(url):
    import openai
    return openai.OpenAI(base_url=url, api_key="x").chat.completions.create(model="m", stream=True,
        messages=[{"role": "user", "content": "a table"}])
got, end = 0, "whole"
try:
    for chunk in globals()[sys.argv[1]](sys.argv[2]):
        got += (chunk.choices[0].delta.content or "").count("----")
except Exception as e:
    end = type(e).__name__
print(got, "of 120,", end)
END
ask() { py/bin/python ask.py "$1" "http://127.0.0.1:$port" 2>/dev/null | tail -1; }
expect "openai" "120 of 120, whole" "$(ask openai)"
expect "litellm" "100 of 120, MidStreamFallbackError" "$(ask litellm)"
