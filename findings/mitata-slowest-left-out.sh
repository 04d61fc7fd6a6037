#!/bin/bash
# One would guess that mitata's "max" is the slowest call that it timed.
#
# If it timed over 12, it leaves the two slowest and the two fastest out of all that it reports:
# max, min, average, percentiles and the list of samples. Two calls of 200 that take 200 ms instead
# of 2 are nowhere to be seen; of three, one is. Neither its output nor its README says so.
#
# mitata 1.0.34 (npm), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get mitata@1.0.34
cat >run.mjs <<'END'
import { measure } from 'mitata'
const wait = ms => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
for (const slow of [2, 3]) {
	let calls = 0
	const stats = await measure(() => {
		calls++
		wait(calls > 100 && calls <= 100 + slow ? 200 : 2)
	}, { min_samples: 200, min_cpu_time: 1, batch_unroll: 1 })
	console.log(calls, stats.samples.length, stats.max / 1e6)
}
END
node run.mjs >seen
read -r calls samples max < <(sed -n 1p seen)
echo "$calls calls, two of them of 200 ms: $samples samples, max $max ms"
holds "max below 100 ms" "$max < 100"
expect "samples left out of 200" 4 "$((200 - samples))"
read -r calls samples max < <(sed -n 2p seen)
echo "$calls calls, three of them of 200 ms: $samples samples, max $max ms"
holds "max of 200 ms" "$max > 199"
