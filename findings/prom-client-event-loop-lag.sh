#!/bin/bash
# One would guess that the lag of Node's event loop that prom-client exports, "the minimum recorded
# event loop delay" and others, is about nothing in an idle process.
#
# It contains the interval of the timer that measures it: 10 ms of an idle process, 100 with
# eventLoopMonitoringPrecision: 100. The first scrape, before the timer has run, has a minimum of
# 292 years (2^63 ns).
#
# prom-client 15.1.3 (npm), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get prom-client@15.1.3
cat >lag.mjs <<'END'
import { Registry, collectDefaultMetrics } from 'prom-client'
const registers = [10, 100].map((eventLoopMonitoringPrecision) => {
	const register = new Registry()
	collectDefaultMetrics({ register, eventLoopMonitoringPrecision })
	return register
})
async function scrape(what) {
	const found = []
	for (const register of registers) {
		const metrics = await register.getMetricsAsJSON()
		found.push(metrics.find((m) => m.name == `nodejs_eventloop_lag_${what}_seconds`).values[0].value)
	}
	console.log(what, ...found)
}
await scrape('min')
await new Promise((resolve) => setTimeout(resolve, 3000))
await scrape('p50')
process.exit()
END
node lag.mjs >out
{ read -r _ first _ && read -r _ short long; } <out
expect "first minimum, s" "9223372036.854776" "$first"
holds "10 ms: median ${short}s" "$short > 0.009"
holds "100 ms: median ${long}s" "$long > 0.09"
