#!/bin/bash
# One would guess that `nft -j list` gives the timeout of a set as it was set: 1500ms as 1.5 or
# 1500.
#
# It drops what is below a second: 1500ms is 1, and 500ms is 0. `nft -j -f` then restores a set
# whose elements live for 1 s, or for ever. The text has 1s500ms and 500ms, and restores both.
#
# nftables 1.0.6-2+deb12u2 (Debian), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get nftables=1.0.6-2+deb12u2 libnftables1=1.0.6-2+deb12u2 libnftnl11=1.2.4-2 libmnl0=1.0.4-3
cat >rules <<'END'
table ip t {
	set half { type ipv4_addr; flags timeout; timeout 500ms; }
	set more { type ipv4_addr; flags timeout; timeout 1500ms; }
}
END
cat >restore.sh <<'END'
nft -f rules
nft list ruleset >text
nft -j list ruleset >json
for form in text json; do
	nft flush ruleset
	[ $form = text ] || nft -j -f json
	[ $form = json ] || nft -f text
	for name in half more; do
		echo "$form $name $(nft list set ip t $name | awk '$1 == "timeout" { print $2 }')"
	done
done
END
own_network restore.sh >seen
timeout_of() { awk -v s="$1 $2" '$1 " " $2 == s { print $3 }' seen; }
for name in half more; do
	expect "JSON, $name" "$([ $name = half ] && echo 0 || echo 1)" "$(python3 -c '
import json, sys
print(*[o["set"]["timeout"] for o in json.load(open("json"))["nftables"]
        if o.get("set", {}).get("name") == sys.argv[1]])' $name)"
done
expect "restored from JSON, half, more" ", 1s" "$(timeout_of json half), $(timeout_of json more)"
expect "restored from text, half, more" "500ms, 1s500ms" "$(timeout_of text half), $(timeout_of text more)"
