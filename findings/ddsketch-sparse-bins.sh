#!/bin/bash
# One would guess that a DDSketch that one of Datadog's libraries wrote as protobuf is read by the
# others: the message is common to them, for merging quantiles that were measured in many places.
#
# Go's default sketch writes its counts into binCounts, which Python's and JavaScript's libraries
# do not read. They return an empty sketch and no error. The message says that a bin's count is the
# sum of binCounts and contiguousBinCounts.
#
# sketches-go 1.4.8 (Go), ddsketch 3.0.1 (PyPI), @datadog/sketches-js 2.1.1 (npm), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

go_get github.com/DataDog/sketches-go@v1.4.8 google.golang.org/protobuf@v1.36.11
pip_get ddsketch==3.0.1 protobuf==6.33.2
npm_get @datadog/sketches-js@2.1.1 protobufjs@7.5.4
cat >main.go <<'END'
package main

import (
	"os"

	"github.com/DataDog/sketches-go/ddsketch"
	"google.golang.org/protobuf/proto"
)

func write(name string, s *ddsketch.DDSketch, err error) {
	if err != nil {
		panic(err)
	}
	for i := 1; i <= 100; i++ {
		if err := s.Add(float64(i)); err != nil {
			panic(err)
		}
	}
	b, err := proto.Marshal(s.ToProto())
	if err != nil {
		panic(err)
	}
	os.WriteFile(name, b, 0o600)
}

func main() {
	s, err := ddsketch.NewDefaultDDSketch(0.01)
	write("default", s, err)
	s, err = ddsketch.LogUnboundedDenseDDSketch(0.01)
	write("dense", s, err)
}
END
cat >read.py <<'END'
import sys
from ddsketch.pb import ddsketch_pb2
from ddsketch.pb.proto import DDSketchProto
message = ddsketch_pb2.DDSketch.FromString(open(sys.argv[1], "rb").read())
sketch = DDSketchProto.from_proto(message)
p50 = sketch.get_quantile_value(0.5)
print(sketch.count, p50 and round(p50))
END
cat >read.cjs <<'END'
const { DDSketch } = require('@datadog/sketches-js')
const sketch = DDSketch.fromProto(require('fs').readFileSync(process.argv[2]))
console.log(sketch.count, Math.round(sketch.getValueAtQuantile(0.5)))
END
go mod tidy 2>/dev/null
go build -o write .
./write
expect "Go's dense sketch of 100 values, Python: count, p50" "100.0 49" \
	"$(py/bin/python read.py dense)"
expect "JavaScript" "100 49" "$(node read.cjs dense)"
expect "Go's default sketch of 100 values, Python" "0.0 None" "$(py/bin/python read.py default)"
expect "JavaScript" "0 NaN" "$(node read.cjs default)"
