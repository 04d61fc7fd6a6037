#!/bin/bash
# One would guess that ipset-translate keeps a set's exceptions, or refuses a set that has them.
#
# It writes an entry with `nomatch` as an ordinary element, without a word. nft refuses the file,
# since the element is part of another; with `auto-merge` it takes it, and what was excepted is a
# member.
#
# ipset 7.17-1, nftables 1.0.6-2+deb12u2 (Debian), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get ipset=7.17-1 libipset13=7.17-1 nftables=1.0.6-2+deb12u2 libnftables1=1.0.6-2+deb12u2 \
	libnftnl11=1.2.4-2 libmnl0=1.0.4-3
cat >saved <<'END'
create blocked hash:net
add blocked 10.0.0.0/8
add blocked 10.1.0.0/16 nomatch
END
cat >run.sh <<'END'
ipset restore <saved
ipset test blocked 10.1.2.3 2>&1 || true
ipset-translate restore <saved >translated
tail -1 translated
nft -f translated 2>&1 | head -1
sed -i 's/flags interval;/& auto-merge;/' translated
nft flush ruleset
nft -f translated
nft get element inet global blocked '{ 10.1.2.3 }' >/dev/null && echo member
END
own_network run.sh >found
expect "ipset" "10.1.2.3 is NOT in set blocked." "$(sed -n 1p found)"
expect "translated" "add element inet global blocked { 10.1.0.0/16 }" "$(sed -n 2p found)"
expect "nft" "translated:4:35-45: Error: conflicting intervals specified" "$(sed -n 3p found)"
expect "10.1.2.3 with auto-merge" "member" "$(sed -n 4p found)"
