#!/bin/bash
# One would guess that httpx's two clients, with the same timeout, reach the same servers in about
# the same time: the calls are the same, with await before those of AsyncClient.
#
# Of a name with two addresses, the first of which is silent, as an IPv6 address often is,
# AsyncClient has the answer within some tenths of a second: anyio tries the second after 0.25 s.
# Client waits for the first for all of the timeout, 5 s by default, and then asks the second, so
# that a call takes longer than its timeout.
#
# httpx 0.28.1, anyio 4.11.0 (PyPI), nftables 1.0.6-2+deb12u2 (Debian), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get nftables=1.0.6-2+deb12u2 libnftables1=1.0.6-2+deb12u2 libnftnl11=1.2.4-2
pip_get httpx==0.28.1 anyio==4.11.0
cat >ask.py <<'END'
import asyncio, time, httpx

async def ask(name):
    async with httpx.AsyncClient(timeout=6) as client:
        return await client.get(f"http://{name}:8000/")

def ask_plain(name):
    return httpx.get(f"http://{name}:8000/", timeout=6)

for name, get in (("AsyncClient", lambda to: asyncio.run(ask(to))), ("Client", ask_plain)):
    get("127.0.0.1")  # loads what the client needs
    start = time.monotonic()
    print(name, get("two.test").status_code, time.monotonic() - start)
END
cat >run.sh <<'END'
ip link set lo up
ip address add 2001:db8::1/128 dev lo
printf '2001:db8::1 two.test\n127.0.0.1 two.test\n' >hosts
mount --bind hosts /etc/hosts
nft 'table ip6 t { chain c { type filter hook output priority 0; tcp dport 8000 drop; }; }'
mkdir web
python3 -m http.server -d web --bind 127.0.0.1 8000 >/dev/null 2>&1 &
until (: </dev/tcp/127.0.0.1/8000) 2>/dev/null; do sleep 0.1; done
getent ahosts two.test | head -1 | cut -d ' ' -f 1
py/bin/python ask.py
END
LD_LIBRARY_PATH=$dir/root/usr/lib/$(uname -m)-linux-gnu PATH=$dir/root/usr/sbin:$PATH \
	unshare -rnmpf --kill-child bash -e run.sh >seen # ends the server, too
time_of() { awk -v c="$1" '$1 == c { print $3 }' seen; }
expect "first address" 2001:db8::1 "$(sed -n 1p seen)"
holds "AsyncClient: $(time_of AsyncClient) s are below 6" "$(time_of AsyncClient) < 6"
holds "Client, timeout=6: $(time_of Client) s are above 6" "$(time_of Client) > 6"
