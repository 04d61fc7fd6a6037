#!/bin/bash
# One would guess that `tc -j filter show` gives each match of a u32 filter to a reader of JSON.
#
# It prints one member "match" per match into the same object. Readers of JSON, such as Python's and
# jq, keep the last: a filter for port 80 of one address reads as one for port 80.
#
# iproute2 6.1.0-3 (Debian), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get iproute2=6.1.0-3 libbpf1=1:1.1.2-0+deb12u1 libmnl0=1.0.4-3
cat >run.sh <<'END_OF_RUN'
ip link add v0 type veth peer name v1
tc qdisc add dev v0 root handle 1: htb
tc class add dev v0 parent 1: classid 1:1 htb rate 8mbit
tc filter add dev v0 parent 1: protocol ip u32 match ip src 10.0.0.1 match ip dport 80 0xffff \
	flowid 1:1
tc filter show dev v0 | grep -c match
tc -j filter show dev v0 | tee filters >&2
grep -o '"match":' filters | wc -l
python3 -c '
import json
match = json.load(open("filters"))[-1]["options"]["match"]
print(match["value"], match["off"])'
END_OF_RUN
expect "matches in text, in JSON; value and offset that are read" "2 2 50 20" \
	"$(own_network run.sh | paste -sd' ')"
