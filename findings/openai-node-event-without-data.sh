#!/bin/bash
# One would guess that OpenAI's Node library ignores an event without data, such as a keep-alive
# `event: ping`: the standard says that an event whose data is empty is not dispatched.
#
# It parses the missing data as JSON and ends the stream with an error, after the tokens before it.
# A comment as keep-alive is ignored, and so is a stray `id:` or `retry:`.
#
# openai 7.55.0 (npm), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get openai@7.55.0
port=$(free_port)
stream() { chunk one && printf '%s\n\n' "$1" && chunk two && printf 'data: [DONE]\n\n'; }
stream ': ping' >comment
stream 'event: ping' >event
stream 'id: 1' >id
stream 'retry: 1000' >retry
cat >ask.mjs <<'END'
import OpenAI from 'openai'
const client = new OpenAI({ baseURL: process.argv[2], apiKey: 'x', maxRetries: 0, logLevel: 'off' })
const out = []
try {
	for await (const c of await client.chat.completions.create({ model: 'm', stream: true,
		messages: [{ role: 'user', content: '?' }] })) out.push(c.choices[0].delta.content)
} catch { out.push('error') }
console.log(...out)
END
python3 "$here/events.py" "$port" &
wait_port "$port"
for kind in comment id retry; do
	expect "$kind" "one two" "$(node ask.mjs "http://127.0.0.1:$port/$kind")"
done
expect "event without data" "one error" "$(node ask.mjs "http://127.0.0.1:$port/event")"
