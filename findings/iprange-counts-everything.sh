#!/bin/bash
# One would guess that iprange counts twice as many IPs in 0.0.0.0/0 as in 0.0.0.0/1: 4294967296.
#
# It counts 0, with status 0, as its counter of a network has 32 bits. The two halves of it, each
# of which is 2147483648, are counted as 4294967296, but 0 once --optimize has made one network of
# them.
#
# iprange 1.0.4+ds-2 (Debian), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get iprange=1.0.4+ds-2
echo 0.0.0.0/1 >half
echo 128.0.0.0/1 >other
echo 0.0.0.0/0 >all
# count OPTION FILE… prints how many IPs iprange counts.
count() { debian iprange "$@" | cut -d, -f 2; }
expect "0.0.0.0/1" 2147483648 "$(count -C half)"
expect "0.0.0.0/0" 0 "$(count -C all)"
expect "both halves" 4294967296 "$(cat half other | count -C)"
expect "both halves, optimized first" 0 "$(cat half other | debian iprange --optimize | count -C)"
expect "the network that has them" 0.0.0.0/0 "$(cat half other | debian iprange --optimize)"
