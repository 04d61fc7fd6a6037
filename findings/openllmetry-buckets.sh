#!/bin/bash
# One would guess that the p50 of gen_ai.client.operation.duration, the histogram that
# instrumentations of language models export, is near the time that each of ten answers took, a few
# tenths of a second.
#
# OpenLLMetry's for openai and ollama leave the buckets to the SDK, whose default ends are 0, 5, 10,
# 25 …, and give seconds: all answers below 5 s are one bucket, of which Prometheus'
# histogram_quantile makes a p50 of 2.5 s and a p99 of 4.95 s. OpenTelemetry's conventions have
# 0.01, 0.02, … 81.92 for this metric, and so has OpenTelemetry's own instrumentation.
#
# opentelemetry-instrumentation-openai 0.62.4, opentelemetry-instrumentation-ollama 0.62.4,
# opentelemetry-instrumentation-openai-v2 2.4b0, opentelemetry-sdk 1.45.2 (PyPI), 2026-11-30;
# OpenTelemetry semantic conventions, generative AI client metrics
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get opentelemetry-instrumentation-openai==0.62.4 opentelemetry-instrumentation-ollama==0.62.4 \
	opentelemetry-instrumentation-openai-v2==2.4b0 opentelemetry-util-genai==0.4b0 \
	openai==3.57.0 ollama==0.6.3 opentelemetry-sdk==1.45.2 opentelemetry-instrumentation==0.66b2
cat >serve.py <<'END'
"""serve.py PORT answers after 0.2 s, by OpenAI's API or Ollama's."""
import http.server, json, sys, time

class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(0.2)
        message = {"role": "assistant", "content": "x"}
        answer = {"id": "c", "object": "chat.completion", "created": 1, "model": "m",
                  "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
                  "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
        if "/api/" in self.path:
            answer = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True,
                      "message": message, "prompt_eval_count": 1, "eval_count": 1}
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
END
cat >ask.py <<'END'
import importlib, sys
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
which, url = sys.argv[1:]
reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider([reader]))
module = importlib.import_module(f"opentelemetry.instrumentation.{which}")
getattr(module, "OllamaInstrumentor" if which == "ollama" else "OpenAIInstrumentor")().instrument()
if which == "ollama":
    import ollama
    call = ollama.Client(host=url).chat
else:
    import openai
    call = openai.OpenAI(base_url=url, api_key="x").chat.completions.create
for _ in range(10):
    call(model="m", messages=[{"role": "user", "content": "x"}])

def quantile(point, q):  # Prometheus' histogram_quantile, of classic histograms
    low, before = 0, 0
    for end, count in zip(point.explicit_bounds, point.bucket_counts):
        if before + count >= q * point.count:
            return low + (end - low) * (q * point.count - before) / count
        low, before = end, before + count
    return low

for resource in reader.get_metrics_data().resource_metrics:
    for metric in (m for scope in resource.scope_metrics for m in scope.metrics):
        if metric.name == "gen_ai.client.operation.duration":
            point = metric.data.data_points[0]
            print(metric.unit, point.count, "%.2f" % (point.sum / point.count),
                  *("%.2f" % quantile(point, q) for q in (0.5, 0.99)))
END
port=$(free_port)
python3 serve.py "$port" &
wait_port "$port"
for which in openai ollama openai_v2; do
	py/bin/python ask.py $which "http://127.0.0.1:$port" >out 2>err || { cat err && exit 1; }
	read -r unit n mean p50 p99 <out
	echo "$which: $n answers, in $unit: mean $mean, p50 $p50, p99 $p99"
	case $which in
	openai_v2) holds "  p50 below twice the mean" "$p50 < 2 * $mean" ;;
	*) expect "  p50, p99" "2.50, 4.95" "$p50, $p99" && holds "  mean below 2 s" "$mean < 2" ;;
	esac
done
