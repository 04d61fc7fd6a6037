#!/bin/bash
# One would guess that a value of OpenTelemetry's baggage reaches a service in another language as
# it was set: all propagators write W3C's header, whose only escapes are those with "%".
#
# Python's reads "+" as a space, and writes a space as "+", as forms have it: "a+b" arrives from
# Go as "a b", and "a b" of Python arrives in Go and JavaScript as "a+b". JavaScript writes "%2B".
#
# opentelemetry-api 1.45.2 (PyPI), go.opentelemetry.io/otel 1.47.0 (Go), @opentelemetry/core 3.1.1
# (npm), 2026-11-29; W3C Baggage, value (baggage-octet has "+")
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get opentelemetry-api==1.45.2
npm_get @opentelemetry/core@3.1.1 @opentelemetry/api@1.10.0
go_get go.opentelemetry.io/otel@v1.47.0
# Each program is given "write VALUE", and prints a header, or "read HEADER", and prints the value.
cat >baggage.py <<'END'
import sys
from opentelemetry import baggage
from opentelemetry.baggage.propagation import W3CBaggagePropagator
propagator, headers = W3CBaggagePropagator(), {}
if sys.argv[1] == "write":
    propagator.inject(headers, baggage.set_baggage("k", sys.argv[2]))
    print(headers["baggage"])
else:
    print(baggage.get_baggage("k", propagator.extract({"baggage": sys.argv[2]})))
END
cat >baggage.cjs <<'END'
const { propagation, ROOT_CONTEXT, defaultTextMapGetter, defaultTextMapSetter } =
	require('@opentelemetry/api')
const { W3CBaggagePropagator } = require('@opentelemetry/core')
const propagator = new W3CBaggagePropagator(), headers = {}
const [, , what, text] = process.argv
if (what === 'write') {
	const all = propagation.createBaggage({ k: { value: text } })
	propagator.inject(propagation.setBaggage(ROOT_CONTEXT, all), headers, defaultTextMapSetter)
	console.log(headers.baggage)
} else {
	const context = propagator.extract(ROOT_CONTEXT, { baggage: text }, defaultTextMapGetter)
	console.log(propagation.getBaggage(context).getEntry('k').value)
}
END
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
)

func main() {
	headers, ctx := propagation.MapCarrier{}, context.Background()
	if os.Args[1] == "write" {
		member, err := baggage.NewMemberRaw("k", os.Args[2])
		if err != nil {
			panic(err)
		}
		all, _ := baggage.New(member)
		propagation.Baggage{}.Inject(baggage.ContextWithBaggage(ctx, all), headers)
		fmt.Println(headers["baggage"])
		return
	}
	headers["baggage"] = os.Args[2]
	all := baggage.FromContext(propagation.Baggage{}.Extract(ctx, headers))
	fmt.Println(all.Member("k").Value())
}
END
go build -o baggage .
run() {
	case $1 in
	Python) shift && py/bin/python baggage.py "$@" ;;
	Go) shift && ./baggage "$@" ;;
	JavaScript) shift && node baggage.cjs "$@" ;;
	esac
}
# reach WRITER VALUE prints what a value of one language is in the others.
reach() {
	local header
	header=$(run "$1" write "$2")
	printf '%s; ' "${header#k=}"
	for reader in Go JavaScript Python; do
		printf '%s: %s; ' $reader "$(run $reader read "$header")"
	done | sed 's/; $//'
}
expect 'Go, "a+b"' \
	'a+b; Go: a+b; JavaScript: a+b; Python: a b' "$(reach Go a+b)"
expect 'JavaScript, "a+b"' \
	'a%2Bb; Go: a+b; JavaScript: a+b; Python: a+b' "$(reach JavaScript a+b)"
expect 'Python, "a+b"' \
	'a%2Bb; Go: a+b; JavaScript: a+b; Python: a+b' "$(reach Python a+b)"
expect 'Python, "a b"' \
	'a+b; Go: a+b; JavaScript: a+b; Python: a b' "$(reach Python 'a b')"
