#!/bin/bash
# One would guess that the maximum of a Timer of Dropwizard Metrics is the longest call that it has
# timed, at least of the last five minutes, which it stands for.
#
# It is the longest of a sample: of 20,000 calls a second the timer keeps 1028. One of 20,000 that
# took 1 s, and the others 1 ms, is in the sample once in twenty times; mostly "max" is 1 ms, and so
# is the mean. Its manual says of percentiles that they come from a sample. A reservoir of a time
# window has the 1 s.
#
# io.dropwizard.metrics:metrics-core 4.2.37 (Maven), OpenJDK 17, 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

mvn_get io.dropwizard.metrics:metrics-core:4.2.37
cat >Max.java <<'JAVA'
import com.codahale.metrics.*;
import java.util.concurrent.TimeUnit;

class Max {
	static void fill(Timer timer) {
		for (int i = 0; i < 20000; i++)
			timer.update(i == 5000 ? 1000 : 1, TimeUnit.MILLISECONDS);
	}

	public static void main(String[] args) {
		int lost = 0;
		for (int i = 0; i < 20; i++) {
			Timer timer = new MetricRegistry().timer("t");
			fill(timer);
			Snapshot all = timer.getSnapshot();
			if (all.getMax() > 999_000_000)
				continue;
			if (lost++ == 0)
				System.out.printf("%d %d %d %.1f%n", timer.getCount(), all.size(),
					all.getMax() / 1_000_000, all.getMean() / 1_000_000);
		}
		System.out.println(lost);
		Timer window = new Timer(new SlidingTimeWindowArrayReservoir(1, TimeUnit.HOURS));
		fill(window);
		System.out.println(window.getSnapshot().getMax() / 1_000_000);
	}
}
JAVA
javac -cp 'jars/*' Max.java
java -cp 'jars/*:.' Max 2>err >seen
expect "calls, values kept, maximum and mean in ms, of a timer whose slowest call took 1000 ms" \
	"20000 1028 1 1.0" "$(sed -n 1p seen)"
lost=$(sed -n 2p seen)
holds "of 20 such timers $lost do not have the 1000 ms: over half" "$lost > 10"
expect "maximum of a window of time" 1000 "$(sed -n 3p seen)"
