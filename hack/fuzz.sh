#!/usr/bin/env bash
# Runs every fuzz target of the module, one after the other.
#
#   hack/fuzz.sh [FUZZTIME] [PATTERN]
#
# FUZZTIME is what `go test -fuzztime` takes, 10s by default, for each target; PATTERN is a regular expression
# that the targets' names must match. Go allows one target a run, which is why this script is there.
set -euo pipefail
cd "$(dirname "$0")/.."

fuzztime=${1:-10s}
pattern=${2:-.}
found=0
while IFS=: read -r file line; do
  target=$(expr "$line" : 'func \(Fuzz[A-Za-z0-9_]*\)(')
  if ! [[ $target =~ $pattern ]]; then
    continue
  fi
  found=$((found + 1))
  hack/phase.sh "fuzz $target" go test "./$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" </dev/null
done < <(git ls-files -co --exclude-standard -- '*_test.go' | sort | xargs grep -H '^func Fuzz')
if [ "$found" -eq 0 ]; then
  echo "no fuzz target matches '$pattern'" >&2
  exit 1
fi
