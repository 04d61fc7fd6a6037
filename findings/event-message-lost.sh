#!/bin/bash
# One would guess that `event: message` changes nothing: the standard gives an event this name if it
# has none.
#
# Together's library for Python drops each event that has a name: the answer is empty, without an
# error. An error that a server sends as `event: error` in the middle of an answer is dropped, too:
# half an answer looks whole. Groq's gives chunks without choices for `event: message`.
#
# together 3.1.1, groq 1.7.0, openai 3.57.0 (PyPI), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get together==3.1.1 groq==1.7.0 openai==3.57.0
(chunk one && chunk two) | sed 's/^data/event: message\n&/' >named
(chunk one && printf 'event: error\ndata: {"error":{"message":"overloaded"}}\n\n') >failed
port=$(free_port)
python3 "$here/events.py" "$port" &
wait_port "$port"
cat >ask.py <<'END'
import sys, groq, openai, together
make = {"groq": groq.Groq, "openai": openai.OpenAI, "together": together.Together}[sys.argv[1]]
client, found = make(base_url=sys.argv[2], api_key="x", max_retries=0), []
try:
    for chunk in client.chat.completions.create(model="m", stream=True,
                                                messages=[{"role": "user", "content": "?"}]):
        found.append(chunk.choices[0].delta.content if chunk.choices else "no-choices")
    found.append("end")
except Exception as e:
    found.append(type(e).__name__)
print(*found)
END
ask() { py/bin/python ask.py "$1" "http://127.0.0.1:$port/$2"; }
expect "openai: event: message" "one two end" "$(ask openai named)"
expect "openai: event: error" "one APIError" "$(ask openai failed)"
expect "groq: event: message" "no-choices no-choices end" "$(ask groq named)"
expect "groq: event: error" "one APIError" "$(ask groq failed)"
expect "together: event: message" "end" "$(ask together named)"
expect "together: event: error" "one end" "$(ask together failed)"
