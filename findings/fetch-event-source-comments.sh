#!/bin/bash
# One would guess that a client of event streams hides comments, as EventSource does: servers send
# `: keep-alive` for proxies, not for the program.
#
# @microsoft/fetch-event-source calls onmessage for each of them, with empty data; a program that
# parses JSON there fails at the first keep-alive. Each further empty line between two events is a
# message, too. eventsource-parser reports neither.
#
# @microsoft/fetch-event-source 2.0.1, eventsource-parser 4.1.3 (npm), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get @microsoft/fetch-event-source@2.0.1 eventsource-parser@4.1.3
cat >read.mjs <<'END'
import { fetchEventSource } from '@microsoft/fetch-event-source'
import { createParser } from 'eventsource-parser'
const text = 'data: a\n\n: keep-alive\n\ndata: b\n\n\n\ndata: c\n\n'
globalThis.document = { hidden: false, addEventListener() {}, removeEventListener() {} }
globalThis.window = globalThis
const fetched = [], parsed = []
await fetchEventSource('http://127.0.0.1/', {
	fetch: async () => new Response(text, { headers: { 'content-type': 'text/event-stream' } }),
	onmessage: e => fetched.push(e.data)
})
createParser({ onEvent: e => parsed.push(e.data) }).feed(text)
console.log(JSON.stringify(fetched), JSON.stringify(parsed))
END
expect "fetch-event-source, eventsource-parser" '["a","","b","","","c"] ["a","b","c"]' \
	"$(node read.mjs)"
