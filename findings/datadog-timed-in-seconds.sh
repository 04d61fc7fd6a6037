#!/bin/bash
# One would guess that a timer of a StatsD client sends milliseconds, the unit that stands in the
# message ("|ms"), as timing(name, 250) of the same client does.
#
# timed() of Datadog's library for Python sends seconds under that unit: a request of 250 ms is
# "0.25|ms", a thousandth, which servers add up with the other's. Its documentation has no unit.
# `use_ms=True` makes it milliseconds, which PyPI's statsd and hot-shots for Node send.
#
# datadog 0.56.0, statsd 4.0.1 (PyPI), hot-shots 17.1.1 (npm), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get datadog==0.56.0 statsd==4.0.1
npm_get hot-shots@17.1.1
cat >send.mjs <<'END'
import { StatsD } from 'hot-shots'
const client = new StatsD({ port: +process.argv[2], host: '127.0.0.1' })
await client.asyncTimer(() => new Promise(done => setTimeout(done, 250)), 'hot-shots')()
client.close()
END
cat >send.py <<'END'
import re, socket, subprocess, time
import statsd
from datadog.dogstatsd import DogStatsd

server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 0))
server.settimeout(10)
port = server.getsockname()[1]
client = DogStatsd(host="127.0.0.1", port=port, disable_telemetry=True, disable_buffering=True)
with client.timed("timed"):
    time.sleep(0.25)
with client.timed("timed, use_ms", use_ms=True):
    time.sleep(0.25)
with statsd.StatsClient("127.0.0.1", port).timer("statsd"):
    time.sleep(0.25)
subprocess.run(["node", "send.mjs", str(port)], check=True)
for _ in range(4):
    name, value, unit = re.match(r"([^:]+):([\d.]+)\|(\w+)", server.recv(1000).decode()).groups()
    print(name, unit, "0.25" if 0.2 < float(value) < 2 else "250" if 200 < float(value) < 2000
          else value, sep="\t")
print("second" in (DogStatsd.timed.__doc__ or "").lower())
END
py/bin/python send.py >seen
expect "Datadog, timed: unit, value" "ms 0.25" "$(awk -F'\t' '$1 == "timed" { print $2, $3 }' seen)"
expect "Datadog, timed with use_ms=True: unit, value" "ms 250" \
	"$(awk -F'\t' '/use_ms/ { print $2, $3 }' seen)"
expect "statsd: unit, value" "ms 250" "$(awk -F'\t' '$1 == "statsd" { print $2, $3 }' seen)"
expect "hot-shots: unit, value" "ms 250" "$(awk -F'\t' '$1 == "hot-shots" { print $2, $3 }' seen)"
expect "timed's documentation has the word second" False "$(tail -1 seen)"
