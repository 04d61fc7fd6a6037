#!/bin/bash
# One would guess that ten calls that take 100 ms on average, one after the other, are ten a
# second.
#
# If one of them takes 991 ms and the others 1 ms, tinybench's throughput is 900 a second, also in
# the table that it prints: the mean of each call's rate, 1000 ms by its time. A slow call in ten,
# which takes nearly all of the time, takes a tenth of the throughput.
#
# tinybench 6.2.5 (npm), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get tinybench@6.2.5
cat >run.mjs <<'END'
import { Bench } from 'tinybench'
const bench = new Bench({ time: 0, iterations: 10, warmup: false })
let call = 0
bench.add('x', () => ({ overriddenDuration: ++call % 10 ? 1 : 991 }))
await bench.run()
const [task] = bench.tasks
console.log(task.runs, task.result.totalTime, task.result.latency.mean)
console.log(Math.round(task.result.throughput.mean))
console.log(bench.table()[0]['Throughput avg (ops/s)'].split(' ')[0])
END
node run.mjs >out
expect "calls, their total and mean time in ms" "10 1000 100" "$(sed -n 1p out)"
expect "throughput, a second" 900 "$(sed -n 2p out)"
expect "in the table" 900 "$(sed -n 3p out)"
