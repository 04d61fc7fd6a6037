#!/bin/bash
# One would guess that an event without data, such as `event: ping` alone, is not delivered: the
# standard has it discarded, as the npm package eventsource-parser does.
#
# Three libraries for Go deliver it, with no data: a client that reads each event as JSON fails at a
# ping.
#
# launchdarkly/eventsource 1.11.0, donovanhide/eventsource c59027999da0, tmaxmax/go-sse 0.12.0 (Go),
# eventsource-parser 4.1.3 (npm), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get eventsource-parser@4.1.3
go_get github.com/launchdarkly/eventsource@v1.11.0 github.com/tmaxmax/go-sse@v0.12.0 \
	github.com/donovanhide/eventsource@v0.0.0-20210830082556-c59027999da0
cat >read.mjs <<'END'
import { createParser } from 'eventsource-parser'
const found = []
createParser({ onEvent: e => found.push(JSON.stringify(e.data)) })
	.feed('event: ping\n\ndata: a\n\n')
console.log(...found)
END
cat >main.go <<'END'
package main

import (
	"fmt"
	"strings"

	donovanhide "github.com/donovanhide/eventsource"
	launchdarkly "github.com/launchdarkly/eventsource"
	"github.com/tmaxmax/go-sse"
)

const stream = "event: ping\n\ndata: a\n\n"

func main() {
	ld, dh := launchdarkly.NewDecoder(strings.NewReader(stream)), donovanhide.NewDecoder(
		strings.NewReader(stream))
	fmt.Print("launchdarkly")
	for e, err := ld.Decode(); err == nil; e, err = ld.Decode() {
		fmt.Printf(" %q", e.Data())
	}
	fmt.Print(", donovanhide")
	for e, err := dh.Decode(); err == nil; e, err = dh.Decode() {
		fmt.Printf(" %q", e.Data())
	}
	fmt.Print(", tmaxmax")
	for e, err := range sse.Read(strings.NewReader(stream), nil) {
		if err == nil {
			fmt.Printf(" %q", e.Data)
		}
	}
	fmt.Println()
}
END
expect "eventsource-parser" '"a"' "$(node read.mjs)"
expect "Go" 'launchdarkly "" "a", donovanhide "" "a", tmaxmax "" "a"' "$(go run .)"
