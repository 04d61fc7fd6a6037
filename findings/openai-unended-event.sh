#!/bin/bash
# One would guess that both of OpenAI's own libraries treat a stream alike whose last event ends
# with the connection instead of an empty line; a decoder of event streams discards such an event.
#
# The Python library discards it, the Node library delivers it: the same answer is a token longer
# in one of them.
#
# openai 3.57.0 (PyPI), openai 7.55.0 (npm), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get openai==3.57.0
npm_get openai@7.55.0
port=$(free_port)
(chunk one && chunk two | head -1) >chat
cat >ask.py <<'END'
import sys, openai
client = openai.OpenAI(base_url=f"http://127.0.0.1:{sys.argv[1]}", api_key="x", max_retries=0)
stream = client.chat.completions.create(model="m", stream=True,
                                        messages=[{"role": "user", "content": "?"}])
print(*[c.choices[0].delta.content for c in stream])
END
cat >ask.mjs <<'END'
import OpenAI from 'openai'
const client = new OpenAI({ baseURL: process.argv[2], apiKey: 'x', maxRetries: 0 })
const stream = await client.chat.completions.create({ model: 'm', stream: true,
	messages: [{ role: 'user', content: '?' }] })
const out = []
for await (const c of stream) out.push(c.choices[0].delta.content)
console.log(...out)
END
python3 "$here/events.py" "$port" &
wait_port "$port"
expect "Python" "one" "$(py/bin/python ask.py "$port")"
expect "Node" "one two" "$(node ask.mjs "http://127.0.0.1:$port")"
