#!/bin/bash
# One would guess that the values 10, 20 and 30 of a DistributionSummary, sent in Micrometer's
# flavour for Etsy's StatsD, are three values there, as those of a Timer are.
#
# They are a counter of 60: Micrometer sends them as type "h", which Etsy's StatsD does not have,
# and it counts what is of a type that it does not know. No bad lines are counted.
#
# io.micrometer:micrometer-registry-statsd 1.17.2 (Maven), statsd 0.9.0 (npm), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

mvn_get io.micrometer:micrometer-registry-statsd:1.17.2
npm_get statsd@0.9.0
port=$(free_port) admin=$(free_port)
cat >config.js <<END
{ address: '127.0.0.1', port: $port, mgmt_address: '127.0.0.1', mgmt_port: $admin,
  flushInterval: 600000, backends: [] }
END
node node_modules/statsd/stats.js config.js >statsd.log 2>&1 &
wait_port "$admin"
# ask WHAT prints the counters or timers of StatsD.
ask() {
	exec 3<>"/dev/tcp/127.0.0.1/$admin"
	echo "$1" >&3
	timeout 10 sed '/END/q' <&3
	exec 3>&-
}
cat >Send.java <<'END'
import io.micrometer.core.instrument.Clock;
import io.micrometer.statsd.*;
import java.time.Duration;

class Send {
	public static void main(String[] args) throws Exception {
		var registry = new StatsdMeterRegistry(new StatsdConfig() {
			public String get(String key) { return null; }
			public StatsdFlavor flavor() { return StatsdFlavor.ETSY; }
			public String host() { return "127.0.0.1"; }
			public int port() { return Integer.parseInt(args[0]); }
			public boolean buffered() { return false; }
		}, Clock.SYSTEM);
		Thread.sleep(2000); // it connects
		for (int i = 1; i <= 3; i++) {
			registry.summary("size").record(10 * i);
			registry.timer("took").record(Duration.ofMillis(10 * i));
		}
		Thread.sleep(1000);
		registry.close();
	}
}
END
java -cp 'jars/*' Send.java "$port"
for _ in $(seq 50); do
	ask timers >timers
	! grep -q took timers || break
	sleep 0.2
done
ask counters >counters
expect "timers" "took: [ 10, 20, 30 ]" "$(grep -o 'took: [^}]*\]' timers)"
expect "counters" "size: 60" "$(grep -o 'size: [^,]*' counters)"
expect "bad lines" "0" "$(sed -n "s/.*bad_lines_seen': \([0-9]*\).*/\1/p" counters)"
