#!/bin/bash
# One would guess that the latency that sockperf reports of a ping-pong, in which each message is
# sent when the answer to the one before has come, is the time of the run divided by its messages.
#
# It is half of that: sockperf halves each round trip, and calls it latency. Next to figures of
# ping, or of netperf's and other tools' requests and answers, a path looks twice as quick.
# --full-rtt gives the round trip.
#
# sockperf 3.7-1 (Debian), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get sockperf=3.7-1
for option in "" --full-rtt; do
	port=$(free_port)
	debian sockperf server --tcp -i 127.0.0.1 -p "$port" >/dev/null 2>&1 &
	wait_port "$port"
	debian sockperf ping-pong --tcp -i 127.0.0.1 -p "$port" -t 2 $option 2>&1 |
		sed 's/\x1b\[[0-9;]*m//g' >out
	latency=$(sed -nE 's/.*avg-(latency|rtt)=([0-9.]+).*/\2/p' out | head -1)
	total=$(grep 'Valid Duration' out)
	seconds=$(sed -E 's/.*RunTime=([0-9.]+).*/\1/' <<<"$total")
	messages=$(sed -E 's/.*ReceivedMessages=([0-9]+).*/\1/' <<<"$total")
	echo "ping-pong $option: $messages messages in $seconds s, latency $latency µs"
	share="$latency * $messages / ($seconds * 1000000)"
	if [ -z "$option" ]; then
		holds "the latency is half of the time of a message" "0.45 < $share && $share < 0.55"
	else
		holds "it is the time of a message" "0.9 < $share && $share < 1.1"
	fi
done
