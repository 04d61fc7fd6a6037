#!/bin/bash
# One would guess that a quarter of a second, timed by Datadog's client for Python and read by
# StatsD, is 250 ms: its type on the wire is "ms", StatsD's word for milliseconds.
#
# It is 0.25 ms: `timed` sends seconds as type "ms", unless the client was made with use_ms=True.
# StatsD's own client for Python sends 250.
#
# datadog 0.56.0, statsd 4.0.1 (PyPI), statsd 0.9.0 (npm), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get statsd@0.9.0
pip_get datadog==0.56.0 statsd==4.0.1
port=$(free_port) admin=$(free_port)
cat >config.js <<END
{ address: '127.0.0.1', port: $port, mgmt_address: '127.0.0.1', mgmt_port: $admin,
  flushInterval: 600000, backends: [] }
END
node node_modules/statsd/stats.js config.js >statsd.log 2>&1 &
wait_port "$admin"
cat >send.py <<'END'
import sys, time
import datadog.dogstatsd.base, statsd
port = int(sys.argv[1])
for name, client in (("datadog", datadog.dogstatsd.base.DogStatsd(port=port)),
                     ("use_ms", datadog.dogstatsd.base.DogStatsd(port=port, use_ms=True))):
    with client.timed(name):
        time.sleep(0.25)
    client.flush()
with statsd.StatsClient("127.0.0.1", port).timer("statsd"):
    time.sleep(0.25)
END
py/bin/python send.py "$port"
# seen TIMER prints the value that StatsD has, in milliseconds.
seen() {
	exec 3<>"/dev/tcp/127.0.0.1/$admin"
	echo timers >&3
	timeout 10 sed '/END/q' <&3 | sed -nE "s/^ *$1: \[ ([0-9.]+) \],?$/\1/p"
	exec 3>&-
}
sleep 1
datadog=$(seen datadog) milliseconds=$(seen use_ms) statsd=$(seen statsd)
echo "datadog $datadog, with use_ms $milliseconds, statsd $statsd ms"
holds "datadog's below 10 ms" "$datadog > 0.2 && $datadog < 10"
holds "the others over 249 ms" "$milliseconds > 249 && $statsd > 249"
