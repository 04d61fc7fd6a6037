#!/bin/bash
# One would guess that a parser of Prometheus' text format keeps the series of a histogram apart that
# differ in a label.
#
# The npm package makes one series of them: no labels, the last one's count of each bucket, and
# neither sums nor counts. A summary loses its labels in the same way, and a counter keeps them.
# Python's own parser keeps all.
#
# parse-prometheus-text-format 1.1.1 (npm), prometheus-client 0.26.0 (PyPI), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get parse-prometheus-text-format@1.1.1
pip_get prometheus-client==0.26.0
cat >metrics <<'END'
# TYPE answers_seconds histogram
answers_seconds_bucket{mode="host",le="0.1"} 90
answers_seconds_bucket{mode="host",le="+Inf"} 100
answers_seconds_sum{mode="host"} 6
answers_seconds_count{mode="host"} 100
answers_seconds_bucket{mode="bridge",le="0.1"} 7
answers_seconds_bucket{mode="bridge",le="+Inf"} 8
answers_seconds_sum{mode="bridge"} 1
answers_seconds_count{mode="bridge"} 8
# TYPE answers_total counter
answers_total{mode="host"} 100
answers_total{mode="bridge"} 8
END
cat >read.cjs <<'END'
const parse = require('parse-prometheus-text-format')
const text = require('fs').readFileSync('metrics', 'utf8')
for (const family of parse(text)) console.log(JSON.stringify(family.metrics))
END
cat >read.py <<'END'
from prometheus_client.parser import text_string_to_metric_families
for family in text_string_to_metric_families(open("metrics").read()):
    print(len(family.samples), len({s.labels["mode"] for s in family.samples}))
END
node read.cjs >seen
expect "histogram" '[{"buckets":{"0.1":"7","+Inf":"8"}}]' "$(sed -n 1p seen)"
expect "counter" '[{"value":"100","labels":{"mode":"host"}},{"value":"8","labels":{"mode":"bridge"}}]' \
	"$(sed -n 2p seen)"
expect "Python's own: samples and modes of each" "8 2 2 2" "$(py/bin/python read.py | xargs)"
