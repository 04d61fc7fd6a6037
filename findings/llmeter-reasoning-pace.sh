#!/bin/bash
# One would guess that LLMeter's time_per_output_token of a server that sends a token each 50 ms is
# 50 ms, also for a model that thinks before it answers.
#
# It divides the time from the first to the last token of the answer by the number of all tokens
# that the server counted, with those of the reasoning, which came before: 5 tokens of an answer
# after 20 of reasoning have 9 ms each. Its first token is that of the answer, after 1 s.
#
# llmeter 0.2.0 (PyPI), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get llmeter==0.2.0 openai==3.57.0 httpx==0.28.1 s3fs==0.4.2 boto3==1.44.8 fsspec==2026.1.0
port=$(free_port)
cat >serve.py <<'END'
import http.server, json, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        thoughts = 20 if "think" in self.path else 0
        for i in range(thoughts + 5):
            time.sleep(0.05)
            self.send({"reasoning_content" if i < thoughts else "content": "x"})
        self.send(None, {"prompt_tokens": 1, "completion_tokens": thoughts + 5,
                         "total_tokens": thoughts + 6,
                         "completion_tokens_details": {"reasoning_tokens": thoughts}})
        self.wfile.write(b"data: [DONE]\n\n")
    def send(self, delta, usage=None):
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
                 "choices": [{"index": 0, "delta": delta}] if delta else [], "usage": usage}
        self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
END
python3 serve.py "$port" &
wait_port "$port"
cat >ask.py <<'END'
import asyncio, sys
from llmeter.endpoints import OpenAICompletionStreamEndpoint
from llmeter.runner import Runner
endpoint = OpenAICompletionStreamEndpoint(model_id="m", api_key="x", base_url=sys.argv[1])
run = Runner(endpoint).run(payload=endpoint.create_payload("x"), n_requests=2, clients=1)
r = asyncio.run(run).responses[-1]
print(r.num_tokens_output, r.time_to_first_token, r.time_per_output_token)
END
ask() { LLMETER_DISABLE_ALL_PROGRESS_BARS=1 py/bin/python ask.py "http://127.0.0.1:$port/$1"; }
ask plain >plain 2>err || { cat err && exit 1; }
ask think >think 2>err || { cat err && exit 1; }
read -r _ _ pace <plain
echo "5 tokens, 50 ms apart: time_per_output_token $pace"
holds "  no less" "$pace > 0.045"
plain=$pace
read -r count first pace <think
echo "20 tokens of reasoning before: $count tokens, first after $first, time_per_output_token $pace"
holds "  the first one is that of the answer" "$first > 1"
holds "  less than a third" "$pace * 3 < $plain"
