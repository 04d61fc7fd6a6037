#!/bin/bash
# One would guess that percentiles of a load generator lie between the smallest and the largest
# response time that it prints next to them, and that a slowdown of 9 % shows in them.
#
# locust rounds response times over 100 ms to two digits before it counts them. Of requests that
# take 144.5 ms the 50th and the 100th percentile are 140 ms, below the minimum; of 145.5 ms they
# are 150, above the maximum, and differ from the median, which is limited to that. Percentiles of
# requests that take 1051 and 1149 ms are the same.
#
# locust 2.47.0 (PyPI), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get locust==2.47.0
cat >stats.py <<'END'
from locust.stats import RequestStats

def log(*times):
    stats = RequestStats()
    for t in times:
        stats.log_request("GET", "/", t, 2)
    e = stats.get("/", "GET")
    p = e.get_response_time_percentile
    print(f"minimum {e.min_response_time}, maximum {e.max_response_time},",
          f"median {e.median_response_time}, 50 % {p(0.5)}, 100 % {p(1)}")

log(144.4, 144.5, 144.6)
log(145.4, 145.5, 145.6)
log(1051.0)
log(1149.0)
END
py/bin/python stats.py 2>/dev/null >out
expect "about 144.5 ms" "minimum 144.4, maximum 144.6, median 144.4, 50 % 140, 100 % 140" \
	"$(sed -n 1p out)"
expect "about 145.5 ms" "minimum 145.4, maximum 145.6, median 145.6, 50 % 150, 100 % 150" \
	"$(sed -n 2p out)"
expect "1051 ms" "minimum 1051.0, maximum 1051.0, median 1051.0, 50 % 1100, 100 % 1100" \
	"$(sed -n 3p out)"
expect "1149 ms" "minimum 1149.0, maximum 1149.0, median 1149.0, 50 % 1100, 100 % 1100" \
	"$(sed -n 4p out)"
