#!/bin/bash
# One would guess that Rust's parser of OpenMetrics reads what Python's client of Prometheus writes.
#
# It refuses the whole text if that has a summary: Python also writes when the summary was created,
# as the format allows, and the parser misses a label "quantile" there. The times of creation of a
# counter and a histogram are read, as is a summary without one.
#
# openmetrics-parser 0.5.1 (crates.io), prometheus-client 0.26.0 (PyPI), 2026-11-29; OpenMetrics 1.0,
# "Summary"
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get prometheus-client==0.26.0
mkdir src
cat >Cargo.toml <<'END'
[package]
name = "finding"
version = "0.0.0"
edition = "2021"

[dependencies]
openmetrics-parser = "=0.5.1"
END
cat >src/main.rs <<'END'
fn main() {
    let text = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    match openmetrics_parser::openmetrics::parse_openmetrics(&text) {
        Ok(e) => println!("{} families", e.families.len()),
        Err(e) => println!("{e:?}"),
    }
}
END
cat >write.py <<'END'
import prometheus_client as client
from prometheus_client.openmetrics.exposition import generate_latest
def write(name):
    open(name, "wb").write(generate_latest(registry))
registry = client.CollectorRegistry()
client.Counter("answers", "Answers", registry=registry).inc()
client.Histogram("size", "Size", registry=registry).observe(1)
write("none")
client.Summary("took", "Time", registry=registry).observe(1)
write("created")
client.disable_created_metrics()
registry = client.CollectorRegistry()
client.Summary("took", "Time", registry=registry).observe(1)
write("uncreated")
END
cat >read.py <<'END'
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
print(len(list(text_string_to_metric_families(open(sys.argv[1]).read()))), "families")
END
CARGO_TARGET_DIR=$dir/target CARGO_HOME=$dir/cargo cargo build -q
py/bin/python write.py
for text in none uncreated created; do
	case $text in
	none) what="counter and histogram" count=2 rust="2 families" ;;
	uncreated) what="summary" count=1 rust="1 families" ;;
	created) what="counter, histogram and summary with its time of creation" count=3
		rust='InvalidMetric("Missing mandatory label for metric: quantile")' ;;
	esac
	expect "$what, Python" "$count families" "$(py/bin/python read.py $text)"
	expect "Rust" "$rust" "$(target/debug/finding $text)"
done
