#!/bin/bash
# One would guess that a file that is pushed twice to an OCI registry, by the same tool, has one
# digest: artifacts are addressed by their content.
#
# oras gives it another digest each time, as it writes the time of the push into the manifest: a
# pipeline that pushes what has not changed makes a new version, and what compares digests, such as
# a GitOps controller, rolls it out. `--annotation org.opencontainers.image.created=…` with a fixed
# time gives one digest.
#
# oras.land/oras 1.3.6 (Go), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

go_get oras.land/oras/cmd/oras@v1.3.6
go build -o oras oras.land/oras/cmd/oras
echo hello >file
# push NAME [OPTION…] pushes the file, and prints the digest of its manifest.
push() { ./oras push --oci-layout "layout:$1" "${@:2}" file:text/plain | sed -n 's/^Digest: //p'; }
created=org.opencontainers.image.created
first=$(push a) fixed=$(push c --annotation $created=2026-01-01T00:00:00Z)
sleep 1.1 # the time is in whole seconds
second=$(push b) again=$(push d --annotation $created=2026-01-01T00:00:00Z)
printf '%s\n' "$first" "$second"
expect "the same digest" no "$([ "$first" = "$second" ] && echo yes || echo no)"
expect "the same layers, and configuration" yes "$(python3 - <<'END'
import json
def parts(tag):
    index = json.load(open("layout/index.json"))["manifests"]
    digest = next(m["digest"] for m in index
                  if m["annotations"]["org.opencontainers.image.ref.name"] == tag)
    manifest = json.load(open("layout/blobs/" + digest.replace(":", "/")))
    return manifest["layers"], manifest["config"]
print("yes" if parts("a") == parts("b") else "no")
END
)"
expect "the same digest, with a time that is given" yes \
	"$([ "$fixed" = "$again" ] && echo yes || echo no)"
