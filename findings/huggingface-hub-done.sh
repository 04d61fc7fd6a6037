#!/bin/bash
# One would guess that a client that reads `data:{…}` without a space, as the standard allows and
# servers send it, also reads `data:[DONE]`.
#
# Hugging Face's library for Python gives all tokens of such a stream, and then JSONDecodeError in
# place of its end: it knows only `data: [DONE]`.
#
# huggingface-hub 2.4.0 (PyPI), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get huggingface-hub==2.4.0
(chunk one && chunk two && printf 'data: [DONE]\n\n') >space
sed 's/^data: /data:/' space >nospace
port=$(free_port)
python3 "$here/events.py" "$port" &
wait_port "$port"
cat >ask.py <<'END'
import sys
from huggingface_hub import InferenceClient
client, found = InferenceClient(base_url=sys.argv[1], api_key="x"), []
try:
    for chunk in client.chat_completion([{"role": "user", "content": "?"}], model="m", stream=True):
        found.append(chunk.choices[0].delta.content)
    found.append("end")
except Exception as e:
    found.append(type(e).__name__)
print(*found)
END
ask() { py/bin/python ask.py "http://127.0.0.1:$port/$1"; }
expect "data: [DONE]" "one two end" "$(ask space)"
expect "data:[DONE]" "one two JSONDecodeError" "$(ask nospace)"
