#!/bin/bash
# One would guess that clients read a quantity of Kubernetes, such as a limit of 1.5Gi in a
# manifest, as the API server does: 1610612736.
#
# Rust's kube_quantity gives 1.5 GiB as a float, and 1 GiB as an integer, which its documentation
# does not tell apart; 1Ei is an error. JavaScript's client refuses 1.5Gi, also in the sums of a pod.
# Python's reads all.
#
# kube_quantity 0.9.0 (crates.io), @kubernetes/client-node 2.0.1 (npm), kubernetes 37.0.2 (PyPI),
# 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get kubernetes==37.0.2
npm_get @kubernetes/client-node@2.0.1
mkdir src
cat >Cargo.toml <<'END'
[package]
name = "finding"
version = "0.0.0"
edition = "2021"

[dependencies]
kube_quantity = "=0.9.0"
k8s-openapi = { version = "=0.29.0", features = ["latest"] }

[profile.dev]
debug = false
END
cat >src/main.rs <<'END'
fn main() {
    for text in ["1.5Gi", "1Ei"] {
        match kube_quantity::ParsedQuantity::try_from(text) {
            Ok(q) => println!("{} {}", q.to_bytes_f64().unwrap(), q.to_bytes_i64().unwrap()),
            Err(e) => println!("{e}"),
        }
    }
}
END
cat >read.mjs <<'END'
import { quantityToScalar, totalMemory } from '@kubernetes/client-node/dist/util.js'
const container = { resources: { limits: { memory: '1.5Gi' } } }
for (const read of [() => quantityToScalar('1Ei'), () => quantityToScalar('1.5Gi'),
	() => totalMemory({ spec: { containers: [container] } }).limit]) {
	try { console.log(String(read())) } catch (e) { console.log(e.message) }
}
END
cat >read.py <<'END'
from kubernetes.utils import parse_quantity
print(int(parse_quantity("1.5Gi")), parse_quantity("1Ei"))
END
CARGO_TARGET_DIR=$dir/target CARGO_HOME=$dir/cargo cargo build -q
expect "Python, 1.5Gi and 1Ei" "1610612736 1152921504606846976" "$(py/bin/python read.py)"
target/debug/finding >rust
expect "Rust, 1.5Gi as a float and an integer" "1610612736 1073741824" "$(sed -n 1p rust)"
expect "Rust, 1Ei" "quantity parsing failed" "$(sed -n 2p rust)"
node read.mjs >js
expect "JavaScript, 1Ei" 1152921504606846976 "$(sed -n 1p js)"
expect "JavaScript, 1.5Gi" "Cannot convert 1.5 to a BigInt" "$(sed -n 2p js)"
expect "JavaScript, a pod's limit of 1.5Gi" "Cannot convert 1.5 to a BigInt" "$(sed -n 3p js)"
