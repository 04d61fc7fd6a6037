#!/bin/bash
# One would guess that a parser of Prometheus' text format reads label values such as URLs.
#
# The crate prometheus-parse drops a label whose value has an equals sign, ends it at a comma, skips
# samples with a brace in a value, and leaves escapes as they are. So `/b?x=1` and `/b?x=2` are one
# series.
#
# prometheus-parse 0.2.5 (Cargo), prometheus-client 0.26.0 (PyPI), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get prometheus-client==0.26.0
cat >metrics <<'END'
# TYPE http_requests gauge
http_requests{path="/a"} 1
http_requests{path="/b?x=1"} 2
http_requests{path="/c,d"} 3
http_requests{path="/e{id}"} 4
http_requests{path="/f\"g"} 5
END
cargo_build 'prometheus-parse = "=0.2.5"' <<'END'
fn main() {
    let text = std::fs::read_to_string("metrics").unwrap();
    let scrape = prometheus_parse::Scrape::parse(text.lines().map(|l| Ok(l.to_string()))).unwrap();
    let paths: Vec<_> = scrape.samples.iter()
        .map(|s| s.labels.get("path").unwrap_or("none").to_string()).collect();
    println!("{}", paths.join(" "));
}
END
cat >read.py <<'END'
from prometheus_client.parser import text_string_to_metric_families
print(*[s.labels["path"] for f in text_string_to_metric_families(open("metrics").read())
        for s in f.samples])
END
expect "Python's own" '/a /b?x=1 /c,d /e{id} /f"g' "$(py/bin/python read.py)"
expect "prometheus-parse" '/a none /c /f\"g' "$(target/debug/finding)"
