#!/bin/bash
# One would guess that `"error": null` in a chunk means that there is no error, as it does to
# OpenAI's libraries for Python and Node.
#
# Their library for Go ends the stream with an error, and so does Hugging Face's for JavaScript.
# Vercel's AI SDK leaves the chunk's text out and goes on, without an exception.
#
# openai-go 3.98.0 (Go), @huggingface/inference 4.13.30, ai 7.0.173, openai 7.55.0,
# @ai-sdk/openai-compatible 3.0.92 (npm), openai 3.57.0 (PyPI), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

go_get github.com/openai/openai-go/v3@v3.98.0
pip_get openai==3.57.0
npm_get ai@7.0.173 @ai-sdk/openai-compatible@3.0.92 @huggingface/inference@4.13.30 openai@7.55.0
(chunk one && chunk two '"error":null' && chunk three && printf 'data: [DONE]\n\n') >answer
port=$(free_port)
python3 "$here/events.py" "$port" &
wait_port "$port"
url="http://127.0.0.1:$port/answer"

cat >ask.py <<'END'
import sys, openai
client = openai.OpenAI(base_url=sys.argv[1], api_key="x", max_retries=0)
stream = client.chat.completions.create(model="m", stream=True,
                                        messages=[{"role": "user", "content": "?"}])
print(*[c.choices[0].delta.content for c in stream])
END
cat >ask.mjs <<'END'
import OpenAI from 'openai'
import { streamText } from 'ai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { InferenceClient } from '@huggingface/inference'
const [, , name, baseURL] = process.argv
const ask = { model: 'm', messages: [{ role: 'user', content: '?' }] }
const clients = {
	async *openai() {
		const client = new OpenAI({ baseURL, apiKey: 'x', maxRetries: 0 })
		const stream = await client.chat.completions.create({ ...ask, stream: true })
		for await (const c of stream) yield c.choices[0].delta.content
	},
	async *huggingface() {
		const client = new InferenceClient('x')
		for await (const c of client.chatCompletionStream({ ...ask, endpointUrl: baseURL }))
			yield c.choices[0].delta.content
	},
	async *ai() {
		const provider = createOpenAICompatible({ name: 'x', baseURL, apiKey: 'x' })
		yield* streamText({ model: provider('m'), prompt: '?', onError() { } }).textStream
	},
}
const out = []
try {
	for await (const text of clients[name]()) out.push(text)
	out.push('end')
} catch (e) {
	out.push(e.name)
}
console.log(...out)
END
cat >main.go <<'END'
package main

import (
	"fmt"
	"net/http"
	"os"

	"github.com/openai/openai-go/v3/packages/ssestream"
)

type chunk struct {
	Choices []struct{ Delta struct{ Content string } }
}

func main() {
	response, err := http.Get(os.Args[1])
	if err != nil {
		panic(err)
	}
	stream := ssestream.NewStream[chunk](ssestream.NewDecoder(response), nil)
	for stream.Next() {
		fmt.Print(stream.Current().Choices[0].Delta.Content, " ")
	}
	fmt.Println(stream.Err())
}
END
expect "openai, Python" "one two three" "$(py/bin/python ask.py "$url")"
expect "openai, Node" "one two three end" "$(node ask.mjs openai "$url")"
expect "openai-go" "one received error while streaming: " "$(go run . "$url")"
expect "@huggingface/inference" "one ProviderApiError" "$(node ask.mjs huggingface "$url")"
expect "AI SDK" "one three end" "$(node ask.mjs ai "$url")"
