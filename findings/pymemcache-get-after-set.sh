#!/bin/bash
# One would guess that a cache on the same machine answers within a millisecond, also after a write.
#
# pymemcache, which does not wait for the answer of a set, and does not set TCP_NODELAY, holds a get
# after a set back until the server has acknowledged the set: 40 ms. `no_delay=True` ends that.
#
# pymemcache 4.0.0 (PyPI), memcached 1.6.18-1+deb12u1 (Debian), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get pymemcache==4.0.0
deb_get memcached=1.6.18-1+deb12u1 libevent-2.1-7=2.1.12-stable-8
port=$(free_port)
LD_LIBRARY_PATH=$dir/root/usr/lib/$(uname -m)-linux-gnu root/usr/bin/memcached \
	-u root -l 127.0.0.1 -p "$port" &
wait_port "$port"
cat >ask.py <<'END'
import statistics, sys, time
from pymemcache.client.base import Client

def median(client, before):
    took = []
    for i in range(100):
        if before:
            client.set("key", b"%d" % i)
        start = time.monotonic()
        client.get("key")
        took.append(time.monotonic() - start)
        time.sleep(0.005)
    return round(statistics.median(took[50:]) * 1000, 2)

address = ("127.0.0.1", int(sys.argv[1]))
print(median(Client(address), False), median(Client(address), True),
      median(Client(address, no_delay=True), True))
END
py/bin/python ask.py "$port" >found
read -r get after nodelay <found
echo "median ms of a get: $get; after a set: $after; the same with no_delay: $nodelay"
holds "after a set over 30 ms" "$after > 30"
holds "else below 10 ms" "$get < 10 && $nodelay < 10"
