#!/bin/bash
# One would guess that TraceIdRatioBased(0.5), given the same trace ID, decides the same in each of
# OpenTelemetry's languages: it has no state, and samples a fraction of trace IDs by the ID alone.
#
# Python's and JavaScript's agree on 497 of 1000 trace IDs, as two coins do. Where services sample
# by themselves, without ParentBased, half of the traces lack the spans of one language. Python
# takes the lower half of the ID, JavaScript combines all of it (opentelemetry-js issue 6503); the
# specification leaves the algorithm open, and recommends the sampler for root spans.
#
# opentelemetry-sdk 1.45.2 (PyPI), @opentelemetry/sdk-trace-base 2.12.1 (npm), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get opentelemetry-sdk==1.45.2
npm_get @opentelemetry/sdk-trace-base@2.12.1 @opentelemetry/api@1.9.0
python3 -c 'import hashlib
for i in range(1000): print(hashlib.md5(b"%d" % i).hexdigest())' >ids
cat >sample.py <<'END'
import sys
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased
sampler = TraceIdRatioBased(0.5)
for line in sys.stdin:
    decision = sampler.should_sample(None, int(line, 16), "").decision
    print("true" if decision.is_sampled() else "false")
END
cat >sample.mjs <<'END'
import { ROOT_CONTEXT } from '@opentelemetry/api'
import { SamplingDecision, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace-base'
import { readFileSync } from 'node:fs'
const sampler = new TraceIdRatioBasedSampler(0.5)
for (const id of readFileSync(0, 'utf8').trim().split('\n'))
	console.log(sampler.shouldSample(ROOT_CONTEXT, id).decision ==
		SamplingDecision.RECORD_AND_SAMPLED)
END
py/bin/python sample.py <ids >python
node sample.mjs <ids >js
agree() { paste -d ' ' "$1" "$2" | awk '$1 == $2 { n++ } END { print n + 0 }'; }
expect "of 1000 IDs Python samples" 503 "$(grep -c true python)"
expect "JavaScript samples" 486 "$(grep -c true js)"
expect "they agree on" 497 "$(agree python js)"
