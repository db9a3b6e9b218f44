#!/usr/bin/env bash
# Builds and runs the benchmark of the read side, which is a module of its own because of DuckDB.
#
#   hack/bench-read.sh [FLAG…]    -help lists the flags
set -euo pipefail
cd "$(dirname "$0")/duckbench"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# What Weir depends on this module depends on too. Rather than to be kept in step, its go.mod is completed anew each
# time, in a copy; the checksums are Weir's own and those of DuckDB that stand here.
cp go.mod "$work/go.mod"
sort -u go.sum ../../go.sum > "$work/go.sum"
go build -mod=mod -modfile="$work/go.mod" -o "$work/duckbench" .
"$work/duckbench" "$@"
