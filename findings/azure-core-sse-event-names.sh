#!/bin/bash
# One would guess that an event without data, such as the `event: ping` that servers and gateways
# send to keep a stream open, has no effect, or is an event without data.
#
# @azure/core-sse keeps its name: the next event, a token that has no name, is called "ping". A
# program that drops pings drops a token after each. eventsource-parser forgets the name with the
# event.
#
# @azure/core-sse 2.4.0, eventsource-parser 4.1.3 (npm), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get @azure/core-sse@2.4.0 eventsource-parser@4.1.3
cat >read.mjs <<'END'
import { createSseStream } from '@azure/core-sse'
import { createParser } from 'eventsource-parser'
const text = 'event: ping\n\ndata: token\n\n'
const body = new Blob([text]).stream()
for await (const e of createSseStream(body)) console.log('@azure/core-sse:', e.event, e.data)
createParser({ onEvent: (e) => console.log('eventsource-parser:', e.event, e.data) }).feed(text)
END
expect "names and data" "@azure/core-sse: ping token
eventsource-parser: undefined token" "$(node read.mjs)"
