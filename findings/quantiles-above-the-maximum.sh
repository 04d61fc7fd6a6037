#!/bin/bash
# One would guess that no percentile of some latencies is above the longest or below the shortest of
# them.
#
# Of ten, 1, 2, … 9 and 100 ms, Python's statistics.quantiles makes a p99 of 181 ms, and a p1 of
# 0.11 ms: by default it draws the line between the last two values on beyond them, as its
# documentation says of samples of something that has more extreme values. Of 1, 50 and 100 ms the
# p1 is below zero. method="inclusive" gives a p99 of 91.8 ms, as simple-statistics does; percentile
# gives 100 ms.
#
# Python 3.11, simple-statistics 7.12.1, percentile 1.6.0 (npm), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get simple-statistics@7.12.1 percentile@1.6.0
cat >run.py <<'END'
import statistics
values = [1, 2, 3, 4, 5, 6, 7, 8, 9, 100]
for method in "exclusive", "inclusive":
    q = statistics.quantiles(values, n=100, method=method)
    print("%.2f %.2f %.2f" % (q[0], q[49], q[98]))
print("%.2f" % statistics.quantiles([1, 50, 100], n=100)[0])
END
cat >run.cjs <<'END'
const values = [1, 2, 3, 4, 5, 6, 7, 8, 9, 100]
const simple = require('simple-statistics'), percentile = require('percentile')
const show = f => console.log([1, 50, 99].map(p => f(p).toFixed(2)).join(' '))
show(p => simple.quantile(values, p / 100))
show(p => percentile(p, values))
END
{ python3 run.py; node run.cjs; } >seen
expect "p1, p50 and p99, statistics.quantiles" "0.11 5.50 180.99" "$(sed -n 1p seen)"
expect 'method="inclusive"' "1.09 5.50 91.81" "$(sed -n 2p seen)"
expect "simple-statistics" "1.09 5.50 91.81" "$(sed -n 4p seen)"
expect "percentile" "1.00 5.00 100.00" "$(sed -n 5p seen)"
holds "p1 of 1, 50 and 100 below zero" "$(sed -n 3p seen) < 0"
