#!/bin/bash
# One would guess that a proxy whose settings nobody has touched passes an event stream on while it
# lasts, at least if the server sends it in HTTP chunks.
#
# lighttpd collects the whole answer before it sends the first byte (server.stream-response-body is
# 0 by default, as its manual says): the events arrive together, after the last. With 1 or 2 each
# arrives at once.
#
# lighttpd 1.4.69-1 (Debian), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get lighttpd=1.4.69-1
server=$(free_port)
python3 "$here/web.py" serve "$server" &
wait_port "$server"
modules=$(dirname "$(find root -name mod_proxy.so)")
for stream in unset 1 2; do
	proxy=$(free_port)
	cat >conf <<END
server.modules = ("mod_proxy")
server.document-root = "$dir"
server.bind = "127.0.0.1"
server.port = $proxy
server.upload-dirs = ("$dir")
proxy.server = ("" => (("host" => "127.0.0.1", "port" => $server)))
END
	[ $stream = unset ] || echo "server.stream-response-body = $stream" >>conf
	debian lighttpd -D -f conf -m "$modules" 2>log &
	wait_port "$proxy" || { cat log; exit 1; }
	times=$(python3 "$here/web.py" "read" "http://127.0.0.1:$proxy/events")
	echo "stream-response-body $stream: the events arrive after $times ms"
	read -r first _ _ _ last <<<"$times"
	if [ $stream = unset ]; then
		holds "the first comes with the last" "$last - $first < 200 && $first >= 400"
	else
		holds "the first comes before the last" "$last - $first > 200"
	fi
done
