#!/bin/bash
# One would guess that a histogram's 100th percentile is its maximum, and that ports of
# HdrHistogram agree on both: values are rounded to the bucket's upper edge.
#
# The JavaScript library keeps the maximum exact and rounds percentiles, so that p50 of one value is
# above the maximum. Python's port rounds both. Written and read again, the JavaScript histogram has
# another maximum than before.
#
# hdr-histogram-js 3.0.1 (npm), hdrhistogram 0.10.8 (PyPI), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get hdr-histogram-js@3.0.1
pip_get hdrhistogram==0.10.8
cat >max.mjs <<'END'
import hdr from 'hdr-histogram-js'
const h = hdr.build({ lowestDiscernibleValue: 1, highestTrackableValue: 3.6e9,
	numberOfSignificantValueDigits: 3 })
h.recordValue(100000)
const again = hdr.decodeFromCompressedBase64(hdr.encodeIntoCompressedBase64(h))
console.log(h.maxValue, h.getValueAtPercentile(50), h.getValueAtPercentile(100), again.maxValue)
END
cat >max.py <<'END'
from hdrh.histogram import HdrHistogram
h = HdrHistogram(1, 3600000000, 3)
h.record_value(100000)
again = HdrHistogram.decode(h.encode())
print(h.get_max_value(), h.get_value_at_percentile(50), h.get_value_at_percentile(100),
      again.get_max_value())
END
expect "JavaScript: max, p50, p100, max when read again" "100000 100031 100031 100031" \
	"$(node max.mjs)"
expect "Python: max, p50, p100, max when read again" "100031 100031 100031 100031" \
	"$(py/bin/python max.py)"
