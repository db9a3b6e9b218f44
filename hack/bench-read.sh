#!/usr/bin/env bash
# Builds and runs the benchmark of the read side, which is a module of its own because of DuckDB.
#
#   hack/bench-read.sh [FLAG…]    -help lists the flags
set -euo pipefail
cd "$(dirname "$0")/duckbench"

binary=$(mktemp)
trap 'rm -f "$binary"' EXIT
# -mod=mod: a new dependency of Weir's is one of this module's too.
go build -mod=mod -o "$binary" .
"$binary" "$@"
