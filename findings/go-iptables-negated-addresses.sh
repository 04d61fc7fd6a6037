#!/bin/bash
# One would guess that the Go library that CNI's plug-ins use gives the counters of each rule of a
# chain, also of rules such as theirs: `! -d 224.0.0.0/4 -j MASQUERADE`.
#
# StructuredStats takes "!224.0.0.0/4" for an address, which it is not: one such rule, and there are
# no counters of the whole chain, but an error, whose text is broken too. A negated device is fine.
#
# github.com/coreos/go-iptables 0.8.0 (Go), iptables 1.8.9-2 (Debian), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get iptables=1.8.9-2 libip4tc2=1.8.9-2 libip6tc2=1.8.9-2 libxtables12=1.8.9-2 \
	libnftnl11=1.2.4-2 libmnl0=1.0.4-3
ln -s iptables-nft root/usr/sbin/iptables
go_get github.com/coreos/go-iptables@v0.8.0
cat >main.go <<'END'
package main

import (
	"fmt"

	"github.com/coreos/go-iptables/iptables"
)

func main() {
	t, err := iptables.New()
	if err != nil {
		panic(err)
	}
	rules, err := t.StructuredStats("nat", "POSTROUTING")
	fmt.Print(len(rules), " rules, error: ", err)
}
END
go build -o list .
cat >rules.sh <<'END'
export XTABLES_LIBDIR=$(echo root/usr/lib/*/xtables)
iptables -t nat -A POSTROUTING -s 10.1.0.0/16 ! -o cni0 -j MASQUERADE
./list
echo
iptables -t nat -A POSTROUTING -s 10.2.0.0/16 ! -d 224.0.0.0/4 -j MASQUERADE
./list
END
own_network rules.sh >seen
expect "a rule with a negated device" "1 rules, error: <nil>" "$(sed -n 1p seen)"
expect "another one with a negated address" \
	"0 rules, error: invalid CIDR address: !224.0.0.0/4%!(EXTRA string=could not parse destination)" \
	"$(sed -n 2p seen)"
