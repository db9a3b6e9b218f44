#!/usr/bin/env bash
# Prints a folder with etcd and kube-apiserver, as KUBEBUILDER_ASSETS wants it, and builds them first where that
# has not been done.
#
#   KUBEBUILDER_ASSETS=$(hack/kube.sh)
#
# A KUBEBUILDER_ASSETS that is set already is printed as it is. Otherwise the two are built from the Go modules
# that hack/kube pins: some minutes once, without root. They lie in the cache directory under a stamp of
# those pins, of the Go version and of how they are built. WEIR_CACHE moves the cache directory.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
  echo "$KUBEBUILDER_ASSETS"
  exit 0
fi
if [ -n "${HOME:-}" ]; then
  default_cache=${XDG_CACHE_HOME:-$HOME/.cache}/weir
else
  default_cache=$PWD/.cache
fi
cache=${WEIR_CACHE:-$default_cache}

stamp=$({ go env GOVERSION GOOS GOARCH; cat hack/kube/go.mod hack/kube/go.sum hack/kube.sh; } | git hash-object --stdin | cut -c 1-12)
assets=$cache/kube-$stamp
if [ ! -d "$assets" ]; then
  echo "building etcd and kube-apiserver from hack/kube, which takes some minutes; later runs find them in $assets" >&2
  mkdir -p "$cache"
  # Built beside their place and moved there in one step: another make may be doing the same.
  temporary=$(mktemp -d "$cache/kube-build.XXXXXX")
  trap 'rm -rf "$temporary"' EXIT
  mkdir "$temporary/assets"
  cd hack/kube
  export CGO_ENABLED=0
  version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
  IFS=. read -r major minor _ <<<"${version#v}"
  # Without these the server calls itself v0.0.0 and clients think it older than they are.
  stamps="-s -w"
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    stamps+=" -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor"
    stamps+=" -X $package.gitTreeState=clean -X $package.gitCommit=module -X $package.buildDate=1970-01-01T00:00:00Z"
  done
  nice -n 19 go build -trimpath -buildvcs=false -ldflags "-s -w" -o "$temporary/assets/etcd" go.etcd.io/etcd/server/v3
  nice -n 19 go build -trimpath -buildvcs=false -ldflags "$stamps" -o "$temporary/assets/kube-apiserver" k8s.io/kubernetes/cmd/kube-apiserver
  mv -T "$temporary/assets" "$assets" 2>/dev/null || [ -x "$assets/kube-apiserver" ]
fi
echo "$assets"
