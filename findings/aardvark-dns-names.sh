#!/bin/bash
# One would guess that a container network's name server takes names in any case, as DNS does, and
# that its answers are valid for about as long as containers live.
#
# Podman's knows names in small letters only: "WEB" does not exist where "web" does, and a container
# called "Api" cannot be reached by its own name, but as "api". The TTL of its answers is 86400 s: a
# client that caches goes on with the old address for a day when a container is made again.
#
# aardvark-dns 1.4.0-3 (Debian), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get aardvark-dns=1.4.0-3
mkdir names
port=$(free_port)
printf '%s\n' 127.0.0.1 'aaaaaaaaaaaa 10.9.0.2  web' 'bbbbbbbbbbbb 10.9.0.3  Api' >names/net
cat >ask.py <<'END'
import socket, struct, sys
port, got = int(sys.argv[1]), []
for name in sys.argv[2:]:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(1)
    query = struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + bytes([len(name)]) + name.encode() + \
        struct.pack(">B2H", 0, 1, 1)
    for _ in range(60):
        try:
            s.sendto(query, ("127.0.0.1", port))
            answer = s.recv(512)
            break
        except OSError:
            pass
    code, answers = answer[3] & 15, answer[7]
    got.append(f"{name} " + (f"TTL {struct.unpack('>I', answer[-10:-6])[0]}" if answers
                             else f"code {code}"))
print(", ".join(got))
END
cat >run.sh <<END
"$(find root -name aardvark-dns -type f)" --config "$dir/names" -p $port run
python3 ask.py $port web WEB Api api
END
expect "answers" "web TTL 86400, WEB code 3, Api code 3, api TTL 86400" \
	"$(unshare -rpf --kill-child bash -e run.sh)"
