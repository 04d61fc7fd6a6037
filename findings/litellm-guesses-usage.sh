#!/bin/bash
# One would guess that the usage at a stream's end is the server's, or missing if it gives none.
#
# LiteLLM counts with a tokenizer of its own if the server gives none, whatever the model is, and
# nothing says so: of 24 chunks "0 ", "1 ", … with a token each it makes 48 tokens. If the server
# gives its own number, that arrives.
#
# litellm 1.110.2, openai 3.57.0 (PyPI), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get litellm==1.110.2 openai==3.57.0
export LITELLM_LOCAL_MODEL_COST_MAP=True # asks no server for prices
port=$(free_port)
cat >serve.py <<'END'
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        model = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["model"]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        def send(choices, **more):
            self.wfile.write(b"data: " + json.dumps({"id": "c", "object": "chat.completion.chunk",
                "created": 1, "model": model, "choices": choices, **more}).encode() + b"\n\n")
        for i in range(24):
            send([{"index": 0, "delta": {"content": f"{i} "}}])
        send([{"index": 0, "delta": {}, "finish_reason": "stop"}])
        if model == "counts":
            send([], usage={"prompt_tokens": 1, "completion_tokens": 24, "total_tokens": 25})
        self.wfile.write(b"data: [DONE]\n\n")
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
END
python3 serve.py "$port" &
wait_port "$port"
cat >ask.py <<'END'
import sys
def litellm(url, model):
    import litellm
    return litellm.completion(model="openai/" + model, api_base=url, api_key="x", stream=True,
        stream_options={"include_usage": True}, messages=[{"role": "user", "content": "hi"}])
def openai(url, model):
    import openai
    return openai.OpenAI(base_url=url, api_key="x").chat.completions.create(model=model,
        stream=True, stream_options={"include_usage": True},
        messages=[{"role": "user", "content": "hi"}])
for name in "openai", "litellm":
    for model in "counts", "silent":
        usage = None
        for chunk in globals()[name](sys.argv[1], model):
            usage = getattr(chunk, "usage", None) or usage
        print(usage.completion_tokens if usage else "none", end=" ")
END
read -r counts silent counts_litellm silent_litellm \
	<<<"$(py/bin/python ask.py "http://127.0.0.1:$port/v1" 2>/dev/null | tail -1)"
expect "the server gives 24, openai" 24 "$counts"
expect "the server gives 24, litellm" 24 "$counts_litellm"
expect "the server gives none, openai" none "$silent"
expect "the server gives none, litellm" 48 "$silent_litellm"
