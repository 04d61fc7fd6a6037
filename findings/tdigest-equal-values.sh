#!/bin/bash
# One would guess that a t-digest of 99 answers in 1 ms and one in 100 ms has a p50 and a p90 of about
# 1 ms, as its first implementation, in Java, and fastdigest say.
#
# The tdigest packages of npm and PyPI take equal values for one centroid and draw a line from its
# middle to the next one: p50 is 1.99 ms and p90 is 81.19 ms. prom-client's summaries are made of the
# former. Latencies that a clock gives in whole milliseconds are such values.
#
# tdigest 0.1.3, prom-client 15.1.3 (npm), tdigest 0.5.2.2, fastdigest 0.12.0 (PyPI),
# com.tdunning:t-digest 3.3 (Maven), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get prom-client@15.1.3 tdigest@0.1.3
pip_get tdigest==0.5.2.2 fastdigest==0.12.0
mvn_get com.tdunning:t-digest:3.3
cat >read.cjs <<'END'
const client = require('prom-client')
const { TDigest } = require('tdigest')
const values = [...Array(99).fill(1), 100]
const digest = new TDigest()
const summary = new client.Summary({ name: 'took_ms', help: 'Time', percentiles: [0.5, 0.9] })
for (const value of values) {
	digest.push(value)
	summary.observe(value)
}
digest.compress()
const round = value => value.toFixed(2)
console.log(...digest.percentile([0.5, 0.9]).map(round))
summary.get().then(s => console.log(...s.values.slice(0, 2).map(v => round(v.value))))
END
cat >read.py <<'END'
import fastdigest
import tdigest
values = [1.0] * 99 + [100.0]
digest = tdigest.TDigest()
digest.batch_update(values)
for d in digest, fastdigest.TDigest.from_values(values):
    print("%.2f %.2f" % (d.percentile(50), d.percentile(90)))
END
cat >Read.java <<'END'
import com.tdunning.math.stats.TDigest;

class Read {
	public static void main(String[] args) {
		var digest = TDigest.createMergingDigest(100);
		for (int i = 0; i < 100; i++)
			digest.add(i < 99 ? 1 : 100);
		System.out.printf("%.2f %.2f%n", digest.quantile(0.5), digest.quantile(0.9));
	}
}
END
node read.cjs >js
py/bin/python read.py >python
expect "p50 and p90, Java" "1.00 1.00" "$(java -cp 'jars/*' Read.java)"
expect "fastdigest" "1.00 1.00" "$(sed -n 2p python)"
expect "npm's tdigest" "1.99 81.19" "$(sed -n 1p js)"
expect "prom-client's summary" "1.99 81.19" "$(sed -n 2p js)"
expect "PyPI's tdigest" "1.99 81.19" "$(sed -n 1p python)"
