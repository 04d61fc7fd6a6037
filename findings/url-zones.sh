#!/bin/bash
# One would guess that a link-local address with its zone, as containers on one bridge have, reaches
# a server with all HTTP clients in the spelling of RFC 6874, http://[fe80::…%25eth0]:8080/.
#
# It does with curl and urllib3. httpx, aiohttp and Java's HttpClient take "25eth0" for the zone,
# and want "%eth0". Node's take neither, and requests turns "%eth0" into "%25eth0", and looks that
# up, though urllib3 below it takes both. Some send the zone, which means something on the client's
# side alone, in the Host header.
#
# requests 2.34.2, urllib3 2.8.0, httpx 0.28.1, aiohttp 3.14.5 (PyPI), Node 20, OpenJDK 17,
# curl 7.88.1, iproute2 6.1.0-3 (Debian), 2026-12-01
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get requests==2.34.2 urllib3==2.8.0 httpx==0.28.1 aiohttp==3.14.5
deb_get iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1 libmnl0=1.0.4-3 \
	curl=7.88.1-10+deb12u15 libcurl4=7.88.1-10+deb12u15
cat >serve.py <<'PY'
"""Answers each request with its Host header."""
import socket, threading
listener = socket.create_server(("::", 8080), family=socket.AF_INET6, backlog=64)
open("ready", "w").close()

def serve(c):
    with c, c.makefile("rb") as file:
        host = b"none"
        while line := file.readline().strip():
            if line.lower().startswith(b"host:"):
                host = line[5:].strip()
        c.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
                  % (len(host), host))

while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
PY
cat >get.py <<'PY'
import asyncio, sys, aiohttp, httpx, requests, urllib3
url = sys.argv[1]

async def get_aiohttp():
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return await answer.text()

for name, get in {"requests": lambda: requests.get(url, timeout=9).text,
                  "urllib3": lambda: urllib3.request("GET", url, timeout=9).data.decode(),
                  "httpx": lambda: httpx.get(url, timeout=9).text,
                  "aiohttp": lambda: asyncio.run(get_aiohttp())}.items():
    try:
        print(name, get())
    except (OSError, httpx.TransportError, aiohttp.ClientError):
        print(name, "fails")
PY
cat >get.mjs <<'JS'
import http from 'node:http'
const url = process.argv[2]
await fetch(url).then(a => a.text(), () => 'fails').then(text => console.log('fetch', text))
try {
	http.get(url, answer => answer.on('data', data => console.log('http', String(data))))
} catch {
	console.log('http', 'fails')
}
JS
cat >Get.java <<'END'
import java.io.IOException;
import java.net.URI;
import java.net.http.*;

class Get {
    public static void main(String[] args) throws Exception {
        String text = "fails";
        try {
            text = HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(args[0]))
                .version(HttpClient.Version.HTTP_1_1).build(),
                HttpResponse.BodyHandlers.ofString()).body();
        } catch (IOException e) {
        }
        System.out.println("Java " + text);
    }
}
END
javac Get.java
cat >run.sh <<'END'
unshare -n sleep 200 &
other=$!
until [ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.1; done
ip link add eth0 type veth peer name eth0 netns $other
ip link set lo up
ip link set eth0 up
in_other() { nsenter -t $other -n "$@"; }
in_other ip link set eth0 up
in_other python3 serve.py &
usable() { "$@" ip -6 -o addr show dev eth0 scope link -tentative | grep -o 'fe80[^/]*'; }
until [ -e ready ] && usable env && usable in_other; do sleep 0.2; done >/dev/null
address=$(usable in_other)
for zone in %25eth0 %eth0; do
	url="http://[$address$zone]:8080/"
	{
		py/bin/python get.py "$url"
		node get.mjs "$url"
		java Get "$url"
		echo "curl $(root/usr/bin/curl -gs "$url")"
	} | sed "s/$address/A/; s/^/$zone /"
done
END
LD_LIBRARY_PATH=$(echo root/usr/lib/*-linux-gnu) PATH=$dir/root/bin:$PATH \
	unshare -rnmpf --mount-proc --kill-child bash -e run.sh >seen
for line in '%25eth0 requests fails' '%25eth0 urllib3 [A]:8080' '%25eth0 httpx fails' \
	'%25eth0 aiohttp fails' '%25eth0 fetch fails' '%25eth0 http fails' \
	'%25eth0 Java fails' '%25eth0 curl [A]:8080' '%eth0 requests fails' '%eth0 urllib3 [A]:8080' \
	'%eth0 httpx [A%eth0]:8080' '%eth0 aiohttp [A%eth0]:8080' '%eth0 fetch fails' \
	'%eth0 http fails' '%eth0 Java [A%eth0]:8080' '%eth0 curl [A]:8080'; do
	read -r zone client host <<<"$line"
	expect "$zone, $client: Host" "$host" "$(sed -n "s/^$zone $client //p" seen)"
done
