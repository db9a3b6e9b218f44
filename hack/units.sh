#!/usr/bin/env bash
# Runs the tests of the packages whose tests start no server: no Redis, no ClickHouse, no API server, no browser. Which those are, their
# imports say, so that a package that begins to start one leaves by itself; `make test` runs them all. Left out are also those
# of hack/judges, which run Node.
#
#   hack/units.sh [FLAG…]     flags of go test
set -euo pipefail
cd "$(dirname "$0")/.."

module=$(go list -m)
# A line per package with tests: its path, and all that it and its tests import themselves.
packages=$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}{{end}}' ./...)
servers="$module/collector/redisserver|$module/collector/clickhouse/clickhousetest|sigs.k8s.io/controller-runtime/pkg/envtest|github.com/chromedp/|$module/hack/browser"
units=$(grep -vE " ($servers)|^$module/hack/judges " <<<"$packages" | cut -d ' ' -f 1)
count=$(wc -l <<<"$packages")
if [ -z "$units" ]; then
  echo "units: every package starts a server, which cannot be: look at hack/units.sh" >&2
  exit 1
fi
mapfile -t units <<<"$units"
go test "$@" "${units[@]}"
echo "${#units[@]} of $count packages; the tests of the others start servers or run Node: make test"
