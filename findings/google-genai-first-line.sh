#!/bin/bash
# One would guess that Google's own libraries read each valid event stream of a server or gateway
# that speaks Gemini's protocol: with an id or an event's name before the data, or with comments.
#
# The Node library drops each event whose first line is not `data:`, without a word: a stream whose
# events have ids has no tokens. The Python library takes each other line for JSON and raises an
# error at the first id, name or comment.
#
# @google/genai 3.1.0 (npm), google-genai 3.3.0 (PyPI), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get @google/genai@3.1.0
pip_get google-genai==3.3.0
port=$(free_port)
for i in 0 1 2; do
	data='data: {"candidates":[{"content":{"role":"model","parts":[{"text":"'$i'"}]}}]}'
	printf '%s\n\n' "$data" >>nothing
	printf ': keep-alive\n\n%s\n\n' "$data" >>comment
	printf 'id: %d\n%s\n\n' $i "$data" >>id
	printf 'event: message\n%s\n\n' "$data" >>name
done
python3 "$here/events.py" "$port" &
wait_port "$port"
cat >ask.mjs <<'END'
import { GoogleGenAI } from '@google/genai'
let got = ''
const client = new GoogleGenAI({ apiKey: 'x', httpOptions: { baseUrl: process.argv[2] } })
try {
	for await (const chunk of await client.models.generateContentStream(
		{ model: 'm', contents: 'x' })) got += chunk.text
} catch (e) {
	got += ' ' + e.constructor.name
}
console.log(`"${got}"`)
END
cat >ask.py <<'END'
import sys
from google import genai
got = ""
client = genai.Client(api_key="x", http_options={"base_url": sys.argv[1]})
try:
    for chunk in client.models.generate_content_stream(model="m", contents="x"):
        got += chunk.text
except Exception as e:
    got += " " + type(e).__name__
print(f'"{got}"')
END
for before in nothing comment id name; do
	want_node='""' want_python='" UnknownApiResponseError"'
	[ $before = nothing ] && want_python='"012"'
	[ $before = nothing ] || [ $before = comment ] && want_node='"012"'
	expect "Node, $before before the data" "$want_node" \
		"$(node ask.mjs "http://127.0.0.1:$port/$before")"
	expect "Python, $before before the data" "$want_python" \
		"$(py/bin/python ask.py "http://127.0.0.1:$port/$before" 2>/dev/null)"
done
