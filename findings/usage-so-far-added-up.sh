#!/bin/bash
# One would guess that an answer of 8 tokens counts as 8 tokens, also if each event of its stream has
# the usage so far, as vLLM's have with stream_options.continuous_usage_stats.
#
# LangChain and Pydantic AI add up the usages of all events: 1 + 2 + … + 8 = 36 tokens and, with the
# final one, 44; the 7 tokens of the prompt become 63. OpenAI's API has one usage, in the last event.
#
# langchain-openai 1.7.4, pydantic-ai-slim 2.66.0 (PyPI), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get langchain-openai==1.7.4 'pydantic-ai-slim[openai]==2.66.0' openai==3.57.0
port=$(free_port)
cat >serve.py <<'END'
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        each = "each" in self.path
        for i in range(8):
            choice = {"index": 0, "delta": {"content": "x"}, "finish_reason": "stop" if i == 7 else None}
            self.send([choice], i + 1 if each else None)
        self.send([], 8)
        self.wfile.write(b"data: [DONE]\n\n")
    def send(self, choices, tokens):
        usage = tokens and {"prompt_tokens": 7, "completion_tokens": tokens, "total_tokens": 7 + tokens}
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
                 "choices": choices, "usage": usage}
        self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
END
python3 serve.py "$port" &
wait_port "$port"
cat >with_langchain.py <<'END'
import sys
from langchain_openai import ChatOpenAI
asks = {"stream_options": {"include_usage": True, "continuous_usage_stats": "each" in sys.argv[1]}}
model = ChatOpenAI(base_url=sys.argv[1], api_key="x", model="m", streaming=True, model_kwargs=asks)
usage = model.invoke("x").usage_metadata
print(usage["input_tokens"], usage["output_tokens"])
END
cat >with_pydantic_ai.py <<'END'
import asyncio, sys
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
provider = OpenAIProvider(base_url=sys.argv[1], api_key="x")
agent = Agent(OpenAIChatModel("m", provider=provider))
async def ask():
    async with agent.run_stream("x") as answer:
        await answer.get_output()
        print(answer.usage.input_tokens, answer.usage.output_tokens)
asyncio.run(ask())
END
export LANGSMITH_TRACING=false
for library in langchain pydantic_ai; do
	for path in last each; do
		py/bin/python "with_$library.py" "http://127.0.0.1:$port/$path" >out 2>err || { cat err && exit 1; }
		case $path in
		last) expect "$library, 7 and 8 tokens, usage in the last event" '7 8' "$(cat out)" ;;
		each) expect "$library, usage so far in each event, too" '63 44' "$(cat out)" ;;
		esac
	done
done
