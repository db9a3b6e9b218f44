#!/usr/bin/env bash
# Pins the images that Weir takes from others by digest: in the Dockerfile the Go that builds, in the chart's values Redis and
# its exporter.
#
#   hack/digests.sh            resolves each tag at its registry and writes the digest beside it
#   hack/digests.sh check      fails where one is missing, or is no digest; needs no registry
#   hack/digests.sh verify     fails where the registry has another digest for a tag than what is written
#
# A digest is what a registry said on the day when this was run: docs/internals/releasing.md says when. It is never made up, so between two
# releases the files may have tags alone, and then `check` fails. RESOLVE=COMMAND is called with an image and prints its digest, in place
# of skopeo, crane or docker, whichever is there.
set -euo pipefail
cd "${DIGESTS_ROOT:-$(dirname "$0")/..}"

digest='sha256:[0-9a-f]{64}'

# resolve IMAGE prints the digest of the manifest list that a tag stands for.
resolve() {
  local found
  if [ -n "${RESOLVE:-}" ]; then
    found=$("$RESOLVE" "$1")
  elif command -v crane >/dev/null; then
    found=$(crane digest "$1")
  elif command -v skopeo >/dev/null; then
    found=sha256:$(skopeo inspect --raw "docker://$1" | sha256sum | cut -d ' ' -f 1)
  elif command -v docker >/dev/null; then
    found=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$1")
  else
    echo "$1 cannot be resolved: neither crane nor skopeo nor docker is installed; RESOLVE names another command" >&2
    return 1
  fi
  if ! [[ $found =~ ^$digest$ ]]; then
    echo "$1: the registry answered ${found:-nothing}, which is no digest" >&2
    return 1
  fi
  echo "$found"
}

go_version() { sed -n 's/^ARG GO_VERSION=//p' Dockerfile; }
go_digest() { sed -n 's/^ARG GO_DIGEST=//p' Dockerfile; }

# chart_images prints the line of each digest in the chart's values but Weir's own, its repository, tag and digest.
chart_images() {
  awk '
    { field = $1; value = $2; gsub(/"/, "", value) }
    field == "repository:" { repository = value }
    field == "tag:" { tag = value }
    field == "digest:" && repository !~ /\/weir$/ { print NR, repository, tag, (value == "" ? "-" : value) }
  ' charts/weir/values.yaml
}

status=0
# held NAME WRITTEN TAGGED writes, checks or verifies one digest; LINE is where it stands in the values, or nothing.
held() {
  local name=$1 written=$2 tagged=$3 line=${4:-} found
  case $mode in
    check)
      if ! [[ $written =~ ^$digest$ ]]; then
        echo "$name: $tagged has no digest; run hack/digests.sh where its registry can be reached" >&2
        status=1
      fi
      ;;
    verify)
      found=$(resolve "$tagged") || { status=1; return; }
      if [ "$found" != "$written" ]; then
        echo "$name: $tagged is $found at its registry, and ${written:-nothing} is written" >&2
        status=1
      fi
      ;;
    write)
      found=$(resolve "$tagged") || { status=1; return; }
      if [ -n "$line" ]; then
        sed -i "${line}s|digest:.*|digest: $found|" charts/weir/values.yaml
      else
        sed -i "s|^ARG GO_DIGEST=.*|ARG GO_DIGEST=$found|" Dockerfile
      fi
      echo "$tagged $found"
      ;;
  esac
}

mode=${1:-write}
case $mode in
  write | check | verify) ;;
  *)
    echo "hack/digests.sh: $mode must be check, verify or nothing" >&2
    exit 2
    ;;
esac
held Dockerfile "$(go_digest)" "docker.io/library/golang:$(go_version)"
while read -r line repository tag written; do
  held "charts/weir/values.yaml:$line" "${written#-}" "$repository:$tag" "$line"
done < <(chart_images)
exit "$status"
