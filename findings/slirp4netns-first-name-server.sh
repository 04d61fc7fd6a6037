#!/bin/bash
# One would guess that the name server that slirp4netns gives a container, 10.0.2.3, answers as long
# as one of the host's does: a program on the host, whose /etc/resolv.conf has two, gets its answer
# from the second if the first is silent, 5 s later.
#
# It asks the first alone, however often the container repeats its question: names cannot be
# resolved in the container while they can be on the host. With the two lines exchanged they can be
# in both. libslirp reads one address from resolv.conf.
#
# slirp4netns 1.2.0-1, libslirp0 4.7.0-1 (Debian), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get slirp4netns=1.2.0-1 libslirp0=4.7.0-1 iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1 \
	libmnl0=1.0.4-3
cat >serve.py <<'PY'
"""serve.py answers DNS on 127.0.0.2, and does not on 127.0.0.1; it counts the questions of both."""
import selectors, socket
asked, waiting = {"127.0.0.1": 0, "127.0.0.2": 0}, selectors.DefaultSelector()
for address in asked:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, 53))
    waiting.register(s, selectors.EVENT_READ, address)
open("listening", "w").close()
while True:
    for key, _ in waiting.select():
        question, client = key.fileobj.recvfrom(4096)
        asked[key.data] += 1
        with open("asked", "w") as f:
            print(*asked.values(), file=f)
        if key.data == "127.0.0.2":
            key.fileobj.sendto(question[:2] + b"\x81\x80\0\1\0\1\0\0\0\0"
                               + question[12:question.index(b"\0", 12) + 5]
                               + b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x0a\1\2\3", client)
PY
cat >ask.py <<'PY'
import socket
try:
    print(socket.gethostbyname("web.test"))
except OSError as e:
    print(e.strerror)
PY
cat >run.sh <<'SH'
[ -n "${mounts-}" ] || mounts=own exec unshare -m bash -e "$0"
ip link set lo up
printf 'nameserver 127.0.0.1\nnameserver 127.0.0.2\n' >resolv.conf
echo 'nameserver 10.0.2.3' >container.conf
unshare -nm bash -ec 'mount --bind container.conf /etc/resolv.conf; touch made; exec sleep 200' &
container=$!
mount --bind resolv.conf /etc/resolv.conf
python3 serve.py &
dns=$!
trap 'kill $container $dns $slirp' EXIT
until [ -e listening ] && [ -e made ]; do sleep 0.1; done
PATH=$PWD/root/usr/bin:$PATH slirp4netns --configure "$container" tap0 >log 2>&1 &
slirp=$!
inside() { nsenter -n -m -t "$container" "$@"; }
until inside ip -4 route | grep -q default; do sleep 0.1; done
python3 ask.py
before=$(cat asked)
inside python3 "$PWD/ask.py"
echo "$before $(cat asked)"
printf 'nameserver 127.0.0.2\nnameserver 127.0.0.1\n' >resolv.conf
sleep 2 # libslirp looks at the file once a second
inside python3 "$PWD/ask.py"
SH
own_network run.sh >seen
expect "first silent: the host" 10.1.2.3 "$(sed -n 1p seen)"
expect "first silent: the container" "Temporary failure in name resolution" "$(sed -n 2p seen)"
read -r first second first_now second_now < <(sed -n 3p seen)
echo "it asked the first $((first_now - first)) times, the second $((second_now - second))"
holds "only the first" "$first_now > $first && $second_now == $second"
expect "second silent: the container" 10.1.2.3 "$(sed -n 4p seen)"
