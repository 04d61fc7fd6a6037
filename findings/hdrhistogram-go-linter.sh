#!/bin/bash
# One would guess that a Go library of some dozen source files is a small download.
#
# The module of hdrhistogram-go 1.4.0 contains a compiled golangci-lint: 38 of its 38.6 MB.
# Every machine and every CI job that builds a program with this library fetches 14.5 MB for it,
# 70 times as much as for 1.1.2, though `go build` compiles nothing of it. The linter is for macOS on
# ARM: Linux could not run it.
#
# github.com/HdrHistogram/hdrhistogram-go 1.1.2 and 1.4.0 (Go), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

go_get github.com/HdrHistogram/hdrhistogram-go@v1.1.2
# module VERSION prints the size of its archive, and its files of more than a megabyte.
module() {
	local file
	file=$(go mod download -json "github.com/HdrHistogram/hdrhistogram-go@v$1")
	stat -c %s "$(sed -n 's/.*"Zip": "\(.*\)".*/\1/p' <<<"$file")"
	find "$(sed -n 's/.*"Dir": "\(.*\)".*/\1/p' <<<"$file")" -size +1M -printf '%P '
	echo
}
{ read -r small && read -r none; } < <(module 1.1.2)
{ read -r large && read -r files; } < <(module 1.4.0)
expect 'large files in 1.1.2' '' "$none"
expect 'large files in 1.4.0' 'bin/golangci-lint' "$files"
holds "archive of $large bytes, of 1.1.2 $small: more than 50 times" "$large > 50 * $small"
linter=$(find "$GOPATH" -name golangci-lint)
expect 'first bytes of the linter (Mach-O, 64 bits, ARM)' cffaedfe0c000001 \
	"$(od -An -tx1 -N8 "$linter" | tr -d ' \n')"
