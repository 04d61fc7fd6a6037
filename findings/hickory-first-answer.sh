#!/bin/bash
# One would guess that a resolver asks the first name server of /etc/resolv.conf, and the second if
# the first does not answer, as resolv.conf(5) says.
#
# Rust's hickory-resolver asks two at once, and returns what comes first: with a name server that
# knows the container's names, and answers after 50 ms, and a public one behind it, a container's
# name is the public one's address. glibc's getaddrinfo returns the first server's.
#
# hickory-resolver 0.26.3 (crates.io), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

export CARGO_PROFILE_DEV_DEBUG=0
features='default-features = false, features = ["tokio", "system-config"]'
cargo_build "hickory-resolver = { version = \"=0.26.3\", $features }" \
	'tokio = { version = "1", features = ["rt", "macros"] }' <<'END'
use hickory_resolver::TokioResolver;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let resolver = TokioResolver::builder_tokio().unwrap().build().unwrap();
    for _ in 0..5 {
        match resolver.lookup_ip("web.test.").await {
            Ok(found) => println!("{}", found.iter().next().unwrap()),
            Err(e) => println!("{e}"),
        }
        resolver.clear_cache();
    }
}
END
cat >serve.py <<'END'
"""serve.py ADDRESS ANSWER SECONDS answers each question for an A record with ANSWER that later."""
import socket, struct, sys, time
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind((sys.argv[1], 53))
open(sys.argv[2], "w").close()  # it listens
while True:
    query, client = server.recvfrom(4096)
    end = query.index(b"\0", 12) + 5
    answer = b"" if query[end - 4:end - 2] != b"\0\1" else (
        b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + socket.inet_aton(sys.argv[2]))
    time.sleep(float(sys.argv[3]))
    server.sendto(query[:2] + struct.pack(">HHHHH", 0x8580, 1, 1 if answer else 0, 0, 0)
                  + query[12:end] + answer, client)
END
cat >run.sh <<'END'
ip link set lo up
printf 'nameserver 127.0.0.1\nnameserver 127.0.0.2\n' >resolv.conf
mount --bind resolv.conf /etc/resolv.conf
python3 serve.py 127.0.0.1 10.0.0.1 0.05 &
python3 serve.py 127.0.0.2 10.0.0.2 0 &
until [ -e 10.0.0.1 ] && [ -e 10.0.0.2 ]; do sleep 0.1; done
for _ in 1 2 3 4 5; do getent hosts web.test | awk 'NR == 1 { print $1 }'; done
target/debug/finding
kill %1 %2
END
unshare -rnmpf --kill-child bash -e run.sh >seen
expect "glibc, five times" "10.0.0.1 10.0.0.1 10.0.0.1 10.0.0.1 10.0.0.1" \
	"$(head -5 seen | paste -sd ' ')"
expect "hickory-resolver, five times" "10.0.0.2 10.0.0.2 10.0.0.2 10.0.0.2 10.0.0.2" \
	"$(tail -5 seen | paste -sd ' ')"
