#!/usr/bin/env bash
# One of the checks of `make verify`.
#
#   hack/verify.sh generated PATH…   what `make generate` writes to the PATHs is what stands there
#   hack/verify.sh modules MODULE…   go.mod and go.sum of each module, a folder, are tidy
#   hack/verify.sh format            gofmt has nothing to change
#   hack/verify.sh deadcode TOOL     no function is there that no program reaches, but what serves tests
#
# Generated files are made anew in place and compared with what stood there before, so that the answer does not
# depend on what is committed, staged or untracked.
set -euo pipefail
cd "$(dirname "$0")/.."

generated() {
  local before path stale=0
  before=$(mktemp -d)
  # shellcheck disable=SC2064 # the folder's name is to be filled in now
  trap "rm -rf '$before'" EXIT
  for path in "$@"; do
    if [ -e "$path" ]; then
      mkdir -p "$before/$(dirname "$path")"
      cp -R "$path" "$before/$path"
    fi
  done
  "${MAKE:-make}" --no-print-directory generate
  for path in "$@"; do
    diff -ruN "$before/$path" "$path" || stale=1
  done
  if [ "$stale" -ne 0 ]; then
    echo "generated files were stale. They are fresh now: look at them and commit them." >&2
    return 1
  fi
}

modules() {
  local module status=0
  for module in "$@"; do
    if ! (cd "$module" && go mod tidy -diff); then
      echo "$module/go.mod or $module/go.sum is not tidy; go mod tidy fixes it" >&2
      status=1
    fi
  done
  return "$status"
}

format() {
  local unformatted
  unformatted=$(git ls-files -co --exclude-standard -z -- '*.go' | xargs -0 gofmt -l)
  if [ -n "$unformatted" ]; then
    printf 'not formatted; make fmt fixes it:\n%s\n' "$unformatted" >&2
    return 1
  fi
}

# What serves tests is hack/browser, collector/clickhouse/clickhousetest, and collector/redisserver and clickhouseserver: weir dev
# starts such servers, too, but kills, restarts and bends none.
deadcode() {
  local found
  found=$("$1" ./...) || return
  found=$(sed '/^collector\/redisserver\//d; /^collector\/consent\/consenttest\//d; /^collector\/sources\/fakes\//d; /^hack\/browser\//d;
    /^collector\/clickhouseserver\//d; /^collector\/clickhouse\/clickhousetest\//d; /^controllers\/kubetest\//d' <<<"$found")
  if [ -n "$found" ]; then
    printf 'no program reaches these; remove them, or move what only tests need into tests:\n%s\n' "$found" >&2
    return 1
  fi
}

check=${1:-}
case $check in
  generated | modules | format | deadcode)
    shift
    "$check" "$@"
    ;;
  *)
    echo "usage: hack/verify.sh generated PATH… | modules MODULE… | format | deadcode TOOL" >&2
    exit 2
    ;;
esac
