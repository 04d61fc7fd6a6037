#!/bin/bash
# One would guess that @histogram.time(), on a function that takes 0.5 s, observes 0.5 s, or
# refuses functions that it cannot time.
#
# Of an `async def`, or a generator, it observes some microseconds, without a word: the time that
# it takes to make the coroutine, which has not begun. So do time() of a summary and a gauge, and
# track_inprogress(), which is 0 while the function runs.
#
# prometheus-client 0.26.0 (PyPI), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get prometheus-client==0.26.0
cat >observe.py <<'END'
import asyncio, time
from prometheus_client import REGISTRY, Gauge, Histogram, Summary

for name, kind in ("histogram", Histogram), ("summary", Summary):
    @kind(name, "Time.").time()
    async def answer():
        await asyncio.sleep(0.5)

    asyncio.run(answer())
    print(name, REGISTRY.get_sample_value(name + "_sum"))

gauge = Gauge("in_progress", "Calls in progress.")

@gauge.track_inprogress()
async def answer():
    print("in_progress", REGISTRY.get_sample_value("in_progress"))

asyncio.run(answer())

@Histogram("stream", "Time.").time()
def stream():
    for i in range(5):
        time.sleep(0.1)
        yield i

list(stream())
print("stream", REGISTRY.get_sample_value("stream_sum"))

@Histogram("plain", "Time.").time()
def plain():
    time.sleep(0.5)

plain()
print("plain", REGISTRY.get_sample_value("plain_sum"))
END
py/bin/python observe.py >seen
value() { awk -v n="$1" '$1 == n { print $2 }' seen; }
for name in histogram summary stream; do
	holds "$name: $(value $name) s are below 0.05" "$(value $name) < 0.05"
done
expect "in progress, seen by the function itself" 0.0 "$(value in_progress)"
holds "plain function: $(value plain) s are 0.5 or more" "$(value plain) >= 0.49"
