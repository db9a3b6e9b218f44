#!/usr/bin/env bash
# Prints the path of a development tool's binary and builds it first where that has not been done.
#
#   hack/tool.sh MODULE PACKAGE
#
# MODULE is a folder with a go.mod of its own that pins the tool (hack/lint, hack/tools). The binary lies in
# the cache directory under a stamp of that module's go.sum and of the Go version, so that a new pin or a new
# Go builds it anew and nothing else does. WEIR_CACHE moves the cache directory.
set -euo pipefail
cd "$(dirname "$0")/.."

module=$1
package=$2
. hack/cache.sh

stamp=$({ go env GOVERSION GOOS GOARCH; cat "$module/go.mod" "$module/go.sum"; } | git hash-object --stdin | cut -c 1-12)
binary=$cache/bin/$(basename "$package")-$stamp
if [ ! -x "$binary" ]; then
  echo "building $(basename "$package") from $module; later runs find it in $cache/bin" >&2
  mkdir -p "$cache/bin"
  # Built beside its place and moved there in one step: another make may be doing the same.
  temporary=$(mktemp -d "$cache/bin/build.XXXXXX")
  trap 'rm -rf "$temporary"' EXIT
  (cd "$module" && go build -trimpath -buildvcs=false -o "$temporary/tool" "$package")
  mv "$temporary/tool" "$binary"
fi
echo "$binary"
