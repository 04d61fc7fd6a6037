#!/bin/bash
# One would guess that a server that answers each request with 404 has availability 0 % for a load
# generator that prints one, or that it counts them as failed.
#
# siege prints 100 % availability, 10 transactions, of which 0 succeeded and 0 failed. 500 does
# lower the availability.
#
# siege 4.0.7-1+b1 (Debian), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get siege=4.0.7-1+b1
port=$(free_port)
python3 "$here/web.py" serve "$port" &
wait_port "$port"
touch siegerc
export HOME=$dir

# attack STATUS prints transactions, availability, successful and failed transactions.
attack() {
	debian siege -R siegerc -b -r 5 -c 2 "http://127.0.0.1:$port/answer?status=$1" 2>&1 |
		sed -nE 's/^(Transactions|Availability|Successful tr.*|Failed tr.*):\s+([0-9.]+).*/\2/p' |
		paste -sd' '
}
expect "404: transactions, availability, successful, failed" "10 100.00 0 0" "$(attack 404)"
expect "200" "10 100.00 10 0" "$(attack 200)"
expect "500" "0 0.00 0 10" "$(attack 500)"
