#!/bin/bash
# One would guess that a client of a model's server sends the next request on the same connection
# once a stream has ended with [DONE], as it does after any other answer.
#
# OpenAI's client for Python closes the connection after each stream, and its AsyncOpenAI does not.
# Hugging Face's closes it, too; Groq's does not: it reads on to the end of the answer, which comes
# after [DONE]. So with some clients a new connection, and its TLS handshake, is in each time to the
# first token.
#
# openai 3.57.0, huggingface-hub 2.4.0, groq 1.7.0 (PyPI), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get openai==3.57.0 huggingface-hub==2.4.0 groq==1.7.0
cat >serve.py <<'PY'
"""serve.py PORT streams answers, and says at /count how many connections had one since then."""
import asyncio, json, re, sys

def event(reason):
    choice = {"index": 0, "delta": {"role": "assistant", "content": "hi"}, "finish_reason": reason}
    return "data: %s\n\n" % json.dumps({"id": "c", "object": "chat.completion.chunk", "created": 1,
                                        "model": "m", "choices": [choice]})

connections = set()

async def serve(reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            if length := re.search(r"(?i)\ncontent-length: *(\d+)", head):
                await reader.readexactly(int(length[1]))
            if head.startswith("GET /count "):
                writer.write(b"HTTP/1.0 200 OK\r\n\r\n%d" % len(connections))
                connections.clear()
                break
            connections.add(writer)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                         b"Transfer-Encoding: chunked\r\n\r\n")
            for text in event(None), event("stop"), "data: [DONE]\n\n", "":
                writer.write(b"%x\r\n%s\r\n" % (len(text), text.encode()))
                await writer.drain()
                await asyncio.sleep(0.01)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()

async def listen():
    async with await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1])) as server:
        await server.serve_forever()

asyncio.run(listen())
PY
cat >ask.py <<'PY'
"""ask.py URL reads five streams of each client to their ends, one after another."""
import asyncio, sys, time, urllib.request
import groq, huggingface_hub, openai
url = sys.argv[1]
ask = {"model": "m", "messages": [{"role": "user", "content": "?"}], "stream": True}

async def asynchronous():
    client = openai.AsyncOpenAI(base_url=url, api_key="x")
    for _ in range(5):
        async for _ in await client.chat.completions.create(**ask):
            pass
        await asyncio.sleep(0.1)

def report(name):
    print(name, urllib.request.urlopen(url + "/count").read().decode(), flush=True)

asyncio.run(asynchronous())
report("AsyncOpenAI")
for client in openai.OpenAI, huggingface_hub.InferenceClient, groq.Groq:
    create = client(base_url=url, api_key="x").chat.completions.create
    for _ in range(5):
        for _ in create(**ask):
            pass
        time.sleep(0.1)
    report(client.__name__)
PY
port=$(free_port)
python3 serve.py "$port" &
wait_port "$port"
expect "connections of five streams" \
	"AsyncOpenAI 1, OpenAI 5, InferenceClient 5, Groq 1" \
	"$(py/bin/python ask.py "http://127.0.0.1:$port" | sed -z 's/\n/, /g; s/, $//')"
