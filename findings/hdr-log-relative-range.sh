#!/bin/bash
# One would guess that the range from 0 to 5 s of a HdrHistogram log has the interval that the log
# begins with, as HdrHistogram's libraries for Java and Python say: a range is relative to the
# start of the log.
#
# Go's reader, told that the range is not absolute, adds the log's start to an interval's time
# instead of taking it off: no interval is in the range. JavaScript's compares the range with the
# seconds since 1970, and has none either.
#
# hdrhistogram-go 1.2.0 (Go), hdrhistogram 0.10.8 (PyPI), hdr-histogram-js 3.0.1 (npm), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

go_get github.com/HdrHistogram/hdrhistogram-go@v1.2.0
pip_get hdrhistogram==0.10.8
npm_get hdr-histogram-js@3.0.1
cat >write.py <<'END'
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogWriter
start = 1795000000
with open("log", "w") as file:
    log = HistogramLogWriter(file)
    log.output_log_format_version()
    file.write(f"#[StartTime: {start}.000 (seconds since epoch)]\n")
    for at in 0, 10, 20:
        histogram = HdrHistogram(1, 3600000000, 3)
        histogram.record_value(1000)
        log.output_interval_histogram(histogram, start + at, start + at + 10)
END
cat >read.py <<'END'
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
def count(*range):
    log, n = HistogramLogReader("log", HdrHistogram(1, 3600000000, 3)), 0
    while log.get_next_interval_histogram(*range):
        n += 1
    return n
print(count(), count(0, 5))
END
cat >main.go <<'END'
package main

import (
	"fmt"
	"os"

	"github.com/HdrHistogram/hdrhistogram-go"
)

func count(next func(*hdrhistogram.HistogramLogReader) (*hdrhistogram.Histogram, error)) (n int) {
	file, err := os.Open("log")
	if err != nil {
		panic(err)
	}
	log := hdrhistogram.NewHistogramLogReader(file)
	for {
		histogram, err := next(log)
		if err != nil {
			panic(err)
		}
		if histogram == nil {
			return n
		}
		n++
	}
}

func main() {
	all := count((*hdrhistogram.HistogramLogReader).NextIntervalHistogram)
	first := count(func(log *hdrhistogram.HistogramLogReader) (*hdrhistogram.Histogram, error) {
		return log.NextIntervalHistogramWithRange(0, 5, false)
	})
	fmt.Println(all, first)
}
END
cat >read.cjs <<'END'
const hdr = require('hdr-histogram-js')
function count(...range) {
	const log = new hdr.HistogramLogReader(require('fs').readFileSync('log', 'utf8'))
	let n = 0
	while (log.nextIntervalHistogram(...range)) n++
	return n
}
console.log(count(), count(0, 5))
END
py/bin/python write.py
echo "intervals of the log, and of its first 5 s"
expect "Python" "3 1" "$(py/bin/python read.py)"
expect "Go" "3 0" "$(go run .)"
expect "JavaScript" "3 0" "$(node read.cjs)"
