#!/bin/bash
# One would guess that the Rust library that wraps `nft -j`, netavark's, reads a ruleset that has
# kube-proxy's rule `masquerade fully-random`.
#
# nft prints one flag as a string and several as an array, and the library knows the array only: it
# returns an error, and no table, chain or rule of the machine. With two flags it reads all.
#
# nftables 0.6.3 (crates.io), nftables 1.0.6-2+deb12u2 (Debian), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get nftables=1.0.6-2+deb12u2 libnftables1=1.0.6-2+deb12u2 libnftnl11=1.2.4-2 libmnl0=1.0.4-3 \
	libjansson4=2.14-2
cargo_build 'nftables = "=0.6.3"' <<'END'
fn main() {
    match nftables::helper::get_current_ruleset() {
        Ok(all) => println!("{} objects", all.objects.len()),
        Err(e) => println!("{}", e.to_string().split(" at line").next().unwrap()),
    }
}
END
cat >run.sh <<'END'
nft 'table ip t { chain c { type nat hook postrouting priority 100; }; }'
for flags in "" fully-random fully-random,persistent; do
	nft flush chain ip t c
	nft add rule ip t c masquerade $flags
	target/debug/finding
done
END
own_network run.sh >seen
expect "masquerade" "4 objects" "$(sed -n 1p seen)"
expect "masquerade fully-random" \
	"got invalid json: data did not match any variant of untagged enum NfObject" "$(sed -n 2p seen)"
expect "masquerade fully-random,persistent" "4 objects" "$(sed -n 3p seen)"
