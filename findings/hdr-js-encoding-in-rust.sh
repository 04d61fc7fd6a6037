#!/bin/bash
# One would guess that a histogram in HdrHistogram's V2 encoding, written by one language's
# library, is read by every other's: this is what the encoding is for.
#
# The Rust library refuses each histogram that the JavaScript library wrote (UnsupportedFeature).
# Python's reads the same text. The JavaScript library writes the integer 1 into the field for the
# conversion ratio, others the double 1.0; the integer read as a double is 5e-324, and Rust's
# library reads no ratio but 1.0.
#
# hdr-histogram-js 3.0.1 (npm), hdrhistogram 7.6.0 (Cargo), hdrhistogram 0.10.8 (PyPI), 2026-11-28
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get hdr-histogram-js@3.0.1
pip_get hdrhistogram==0.10.8
cat >write.mjs <<'END'
import hdr from 'hdr-histogram-js'
const h = hdr.build({ lowestDiscernibleValue: 1, highestTrackableValue: 3.6e9,
	numberOfSignificantValueDigits: 3 })
for (let i = 1; i <= 100; i++) h.recordValue(i * 1000)
console.log(hdr.encodeIntoCompressedBase64(h))
END
cat >write.py <<'END'
from hdrh.histogram import HdrHistogram
h = HdrHistogram(1, 3600000000, 3)
for i in range(1, 101):
    h.record_value(i * 1000)
print(h.encode().decode())
END
cat >read.py <<'END'
import sys, base64, struct, zlib
from hdrh.histogram import HdrHistogram
text = sys.argv[1]
ratio = struct.unpack(">d", zlib.decompress(base64.b64decode(text)[8:])[32:40])[0]
print(f"ratio {ratio}, Python reads {HdrHistogram.decode(text).get_total_count()} values")
END
cargo_build 'hdrhistogram = "=7.6.0"' 'base64 = "=0.22.1"' <<'END'
use base64::{engine::general_purpose::STANDARD, Engine};
use hdrhistogram::serialization::Deserializer;

fn main() {
    for text in std::env::args().skip(1) {
        let bytes = STANDARD.decode(text).unwrap();
        match Deserializer::new().deserialize::<u64, _>(&mut &bytes[..]) {
            Ok(h) => println!("Rust reads {} values", h.len()),
            Err(e) => println!("Rust: {:?}", e),
        }
    }
}
END
js=$(node write.mjs)
python=$(py/bin/python write.py)
expect "JavaScript's" "ratio 5e-324, Python reads 100 values" "$(py/bin/python read.py "$js")"
expect "Python's" "ratio 1.0, Python reads 100 values" "$(py/bin/python read.py "$python")"
expect "JavaScript's" "Rust: UnsupportedFeature" "$(target/debug/finding "$js")"
expect "Python's" "Rust reads 100 values" "$(target/debug/finding "$python")"
