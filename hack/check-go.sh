#!/usr/bin/env bash
# Ends with a message where the Go that would build Weir is older than go.mod asks for.
#
#   hack/check-go.sh
#
# Go 1.21 and later fetch a newer toolchain by themselves unless GOTOOLCHAIN=local forbids it.
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=$(awk '$1 == "go" { print $2; exit }' go.mod)
if ! command -v go >/dev/null; then
  echo "Weir needs Go $wanted or newer, and there is no go on the PATH: see https://go.dev/doc/install" >&2
  exit 1
fi
if ! found=$(go env GOVERSION 2>/dev/null); then
  found=$(GOTOOLCHAIN=local go version | awk '{ print $3 }')
fi
found=${found#go}
older=$(printf '%s\n%s\n' "$wanted" "${found%%[!0-9.]*}" | sort -t. -k1,1n -k2,2n -k3,3n | head -n 1)
if [ "$older" != "$wanted" ]; then
  echo "Weir needs Go $wanted or newer; this is $found. Install it from https://go.dev/doc/install, or let Go fetch it: GOTOOLCHAIN=auto" >&2
  exit 1
fi
