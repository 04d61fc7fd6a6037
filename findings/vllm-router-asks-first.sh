#!/bin/bash
# One would guess that vllm-router hands a request on to its one worker when it comes: to HTTP
# workers it is a "transparent" proxy, says its README, and there is nothing to choose.
#
# With its default policy, cache_aware, it first sends each request to the worker's
# /v1/chat/completions/render, and to /tokenize if that is not there, and waits for the answers for
# up to a second, also if both are 404 each time. A worker that takes 0.3 s for each has its first
# token 0.6 s later, which a load generator takes for the model's time. With --policy round_robin
# the router sends each request once.
#
# vllm-router 0.1.17 (PyPI), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get vllm-router==0.1.17
cat >serve.py <<'PY'
"""serve.py PORT answers chat completions at once, and any other POST by 404 after 0.3 s."""
import http.server, json, sys, time

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, data, status=200):
        data = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.answer({"object": "list", "data": [{"id": "m", "object": "model"}]})

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        with open("got", "a") as f:
            print(self.path, file=f)
        if self.path == "/v1/chat/completions":
            message = {"role": "assistant", "content": "hi"}
            choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
            self.answer({"id": "c", "object": "chat.completion", "created": 1, "model": "m",
                         "choices": choices})
        else:
            time.sleep(0.3)
            self.answer({"error": "not found"}, 404)

    def log_message(self, *args):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
PY
server=$(free_port)
python3 serve.py "$server" &
wait_port "$server"
chat=/v1/chat/completions
for policy in default round_robin; do
	port=$(free_port) options=()
	[ "$policy" = default ] || options=(--policy "$policy")
	py/bin/vllm-router --worker-urls "http://127.0.0.1:$server" --host 127.0.0.1 --port "$port" \
		--prometheus-port "$(free_port)" "${options[@]}" >log 2>&1 &
	wait_port "$port" 2>wait || wait_port "$port" || { cat log && exit 1; }
	for _ in 1 2 3; do
		curl -s -o answer -w '%{http_code} %{time_total}\n' "http://127.0.0.1:$port$chat" \
			-H 'Content-Type: application/json' \
			-d '{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'
	done >seen
	want="$chat $chat $chat"
	first="$chat/render /tokenize $chat"
	[ "$policy" != default ] || want="$first $first $first"
	expect "$policy: status of three requests" "200 200 200" "$(cut -d' ' -f1 seen | xargs)"
	expect "$policy: what the worker got" "$want" "$(xargs <got)"
	quickest=$(cut -d' ' -f2 seen | sort -n | head -1)
	holds "$policy: the quickest took $quickest s" \
		"$([ "$policy" = default ] && echo "$quickest > 0.59" || echo "$quickest < 0.59")"
	rm got
done
