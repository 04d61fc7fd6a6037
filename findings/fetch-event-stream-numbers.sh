#!/bin/bash
# One would guess that the id of an event is a string, as the standard says.
#
# fetch-event-stream makes it a number if it looks like one: ids of one stream have two types, and a
# comparison by === of an id with the one that the server sent fails for 7, but not for 007.
#
# fetch-event-stream 0.1.6 (npm), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get fetch-event-stream@0.1.6
cat >read.mjs <<'END'
import { events } from 'fetch-event-stream'
const out = []
const text = ['7', '007', '1e2', 'a'].map(id => `id: ${id}\ndata: x\n\n`).join('')
for await (const e of events(new Response(text))) out.push(`${e.id} ${typeof e.id}`)
console.log(out.join(', '))
END
expect "ids" "7 number, 007 string, 1e2 string, a string" "$(node read.mjs)"
