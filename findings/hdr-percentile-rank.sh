#!/bin/bash
# One would guess that HdrHistogram's libraries give one percentile of the same values.
#
# Of 60 latencies, one of which is 1 s and the others 100 ms, the 99th percentile is 1 s in
# JavaScript, 100 ms in Go and Python. 99 % of 60 is 59.4: the former rounds the rank up, the latter
# to the nearest.
#
# hdr-histogram-js 3.0.1 (npm), hdrhistogram 0.10.8 (PyPI), HdrHistogram/hdrhistogram-go 1.2.0 (Go),
# 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get hdr-histogram-js@3.0.1
pip_get hdrhistogram==0.10.8
go_get github.com/HdrHistogram/hdrhistogram-go@v1.2.0
cat >main.go <<'END'
package main

import (
	"fmt"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

func main() {
	h := hdr.New(1, 3600000, 3)
	for i := 0; i < 60; i++ {
		v := int64(100)
		if i == 30 {
			v = 1000
		}
		if err := h.RecordValue(v); err != nil {
			panic(err)
		}
	}
	fmt.Println(h.ValueAtQuantile(99))
}
END
go build -o quantile .
cat >quantile.mjs <<'END'
import hdr from 'hdr-histogram-js'
const h = hdr.build({ lowestDiscernibleValue: 1, highestTrackableValue: 3600000,
	numberOfSignificantValueDigits: 3 })
for (let i = 0; i < 60; i++) h.recordValue(i == 30 ? 1000 : 100)
console.log(h.getValueAtPercentile(99))
END
cat >quantile.py <<'END'
from hdrh.histogram import HdrHistogram
h = HdrHistogram(1, 3600000, 3)
for i in range(60):
    h.record_value(1000 if i == 30 else 100)
print(h.get_value_at_percentile(99))
END
expect "JavaScript" 1000 "$(node quantile.mjs)"
expect "Go" 100 "$(./quantile)"
expect "Python" 100 "$(py/bin/python quantile.py)"
