#!/bin/bash
# One would guess that gen_ai.client.generation.choices counts an answer with one choice as one.
#
# It counts 2: each choice is added once without its finish_reason and once with it, so a sum over the
# metric's attributes is twice the number of choices.
#
# opentelemetry-instrumentation-openai 0.62.4 (PyPI), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get opentelemetry-instrumentation-openai==0.62.4 openai==3.57.0 opentelemetry-sdk==1.45.2 \
	opentelemetry-instrumentation==0.66b2
port=$(free_port)
cat >serve.py <<'END'
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        n = json.loads(self.rfile.read(int(self.headers["Content-Length"]))).get("n", 1)
        message = {"role": "assistant", "content": "x"}
        answer = json.dumps({"id": "c", "object": "chat.completion", "created": 1, "model": "m",
            "usage": {"prompt_tokens": 1, "completion_tokens": n, "total_tokens": n + 1},
            "choices": [{"index": i, "message": message, "finish_reason": "stop"} for i in range(n)]})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
END
python3 serve.py "$port" &
wait_port "$port"
cat >ask.py <<'END'
import sys
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider([reader]))
from opentelemetry.instrumentation.openai import OpenAIInstrumentor
OpenAIInstrumentor().instrument()
import openai
client = openai.OpenAI(base_url=sys.argv[1], api_key="x")
answer = client.chat.completions.create(model="m", n=int(sys.argv[2]),
                                        messages=[{"role": "user", "content": "x"}])
all = [m for r in reader.get_metrics_data().resource_metrics for s in r.scope_metrics for m in s.metrics]
counted = [p.value for m in all if m.name == "gen_ai.client.generation.choices"
           for p in m.data.data_points]
print(len(answer.choices), sum(counted))
END
for n in 1 3; do
	py/bin/python ask.py "http://127.0.0.1:$port" $n >out 2>err || { cat err && exit 1; }
	expect "choices of the answer, and in the metric" "$n $((2 * n))" "$(cat out)"
done
