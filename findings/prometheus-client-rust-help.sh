#!/bin/bash
# One would guess that Rust's own Prometheus client writes text that Prometheus' other libraries read,
# whatever sentence describes a metric.
#
# It does not escape a line end in the description, so that the rest is a line of its own, and the
# whole scrape is an error: no metric is read, not of this description nor of others. Python's
# and JavaScript's clients escape it; a label's value is escaped in Rust, too.
#
# prometheus-client 0.26.0 (crates.io), prometheus-client 0.26.0 (PyPI), 2026-11-29; OpenMetrics 1.0,
# "Escaping"
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
prometheus-client = "=0.26.0"
END
cat >src/main.rs <<'END'
use prometheus_client::{encoding::text::encode, metrics::counter::Counter, metrics::family::Family,
    registry::Registry};

fn main() {
    let mut registry = Registry::default();
    let answers = Family::<Vec<(String, String)>, Counter>::default();
    answers.get_or_create(&vec![("path".into(), "a\nb".into())]).inc();
    let help = std::env::args().nth(1).unwrap();
    registry.register("answers", help, answers);
    registry.register("errors", "Errors", Counter::<u64>::default());
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    print!("{text}");
}
END
cat >read.py <<'END'
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
try:
    families = list(text_string_to_metric_families(sys.stdin.read()))
    print(*[repr(f.documentation) for f in families], families[0].samples[0].labels)
except ValueError as error:
    print("ValueError:", error)
END
cat >write.py <<'END'
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.openmetrics.exposition import generate_latest
registry = CollectorRegistry()
Counter("answers", "Answers\nby path", ["path"], registry=registry).labels("a\nb").inc()
print(generate_latest(registry).decode(), end="")
END
CARGO_TARGET_DIR=$dir/target CARGO_HOME=$dir/cargo cargo build -q
expect "one line, by Rust" "'Answers.' 'Errors.' {'path': 'a\\nb'}" \
	"$(target/debug/finding Answers | py/bin/python read.py)"
expect "two lines, by Rust" "ValueError: could not convert string to float: 'path.'" \
	"$(target/debug/finding $'Answers\nby path' | py/bin/python read.py)"
expect "two lines, by Python" "'Answers\\nby path' {'path': 'a\\nb'}" \
	"$(py/bin/python write.py | py/bin/python read.py)"
