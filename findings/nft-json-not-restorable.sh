#!/bin/bash
# One would guess that `nft -j -f` restores what `nft -j list ruleset` printed, as `nft -f` restores
# the text of `nft list ruleset`.
#
# It refuses a map whose data are an address and a port, and a verdict map that jumps to a chain
# of the same table. It restores others without a word of what is lost: comments of tables and
# sets, auto-merge, `flags dynamic`, and typeof, which becomes a type. The text restores all.
#
# nftables 1.0.6-2+deb12u2 (Debian), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get nftables=1.0.6-2+deb12u2 libnftables1=1.0.6-2+deb12u2 libnftnl11=1.2.4-2 libmnl0=1.0.4-3
cat >lossy <<'END'
table inet t {
	comment "of the table"
	set merged { type ipv4_addr; flags interval; auto-merge; comment "of the set"; }
	set filled { type inet_service; size 100; flags dynamic; timeout 1m; }
	set typed { typeof ip saddr . th dport; elements = { 10.0.0.1 . 80 }; }
}
END
cat >pair <<'END'
table ip t {
	map to { type inet_service : ipv4_addr . inet_service; elements = { 80 : 172.17.0.2 . 8080 }; }
}
END
cat >jump <<'END'
table ip t {
	map by { type inet_service : verdict; elements = { 80 : jump web }; }
	chain web { }
}
END
cat >restore.sh <<'END'
for file in lossy pair jump; do
	nft flush ruleset
	nft -f $file
	nft list ruleset >text
	nft -j list ruleset >json
	nft flush ruleset
	nft -f text
	nft list ruleset | cmp - text && echo "$file, text: restored"
	nft flush ruleset
	if nft -j -f json 2>error; then
		nft list ruleset >got
		echo "$file, JSON: lost: $(diff text got | sed -n 's/^<\s*//p' | paste -sd,)"
	else
		echo "$file, JSON: refused"
	fi
done
END
lost='comment "of the table",auto-merge,comment "of the set",flags dynamic,timeout'
expect "rule sets" "lossy, text: restored
lossy, JSON: lost: $lost,typeof ip saddr . th dport
pair, text: restored
pair, JSON: refused
jump, text: restored
jump, JSON: refused" "$(own_network restore.sh)"
