#!/bin/bash
# One would guess that `-n 100 -c 30`, a hundred requests of 30 clients, is a hundred requests for
# each load generator that has these options.
#
# hey makes 90, with status 0 and without a word: each client makes 100 / 30 of them, without the
# fraction. ab and h2load make a hundred.
#
# hey 0.1.5 (Go), apache2-utils 2.4.71-1~deb12u1, nghttp2-client 1.52.0-1+deb12u3 (Debian),
# 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get nghttp2-client=1.52.0-1+deb12u3 libev4=1:4.33-1 apache2-utils=2.4.71-1~deb12u1 \
	libapr1=1.7.2-3+deb12u1 libaprutil1=1.6.3-1+deb12u1
go_get github.com/rakyll/hey@v0.1.5
go build -o hey github.com/rakyll/hey
port=$(free_port)
python3 "$here/web.py" serve "$port" &
wait_port "$port"
url=http://127.0.0.1:$port/answer

# got PROGRAM ARGUMENT… runs a load generator, and prints how many requests the server got.
got() {
	"$@" >out 2>&1 || { cat out >&2; return 1; }
	curl -s "http://127.0.0.1:$port/count"
}
expect "hey" 90 "$(got ./hey -n 100 -c 30 "$url")"
expect "  its own count" 90 "$(sed -nE 's/.*\[200\]\s+([0-9]+) responses/\1/p' out)"
expect "ab" 100 "$(got debian ab -k -n 100 -c 30 "$url?framing=close")"
expect "h2load" 100 "$(got debian h2load --h1 -n 100 -c 30 "$url")"
