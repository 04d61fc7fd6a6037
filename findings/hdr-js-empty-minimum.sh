#!/bin/bash
# One would guess that an empty histogram has the minimum 0, as its maximum and mean are 0, and that
# a library's two engines agree.
#
# The JavaScript library answers 2^53 - 1 with its JavaScript engine and 2^64 with its WebAssembly
# engine. Python's port answers 0.
#
# hdr-histogram-js 3.0.1 (npm), hdrhistogram 0.10.8 (PyPI), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get hdr-histogram-js@3.0.1
pip_get hdrhistogram==0.10.8
cat >empty.mjs <<'END'
import hdr from 'hdr-histogram-js'
await hdr.initWebAssembly()
for (const useWebAssembly of [false, true]) {
	const h = hdr.build({ useWebAssembly })
	console.log(BigInt(h.minNonZeroValue).toString(), h.maxValue, h.mean)
}
END
expect "JavaScript, WebAssembly: min, max, mean" \
	"9007199254740991 0 0,18446744073709551616 0 0" "$(node empty.mjs | paste -sd,)"
expect "Python: min, max, mean" "0 0 0.0" "$(py/bin/python -c '
from hdrh.histogram import HdrHistogram
h = HdrHistogram(1, 3600000000, 3)
print(h.get_min_value(), h.get_max_value(), h.get_mean_value())')"
