#!/usr/bin/env bash
# Prints a folder with Kubernetes' own programs, and builds those first that are not there yet.
#
#   KUBEBUILDER_ASSETS=$(hack/kube.sh)                       # etcd, kube-apiserver and kubectl, which the tests need
#   PATH=$(hack/kube.sh kubectl helm kubelet …):$PATH        # those named, of etcd, coredns, helm and Kubernetes' commands
#
# They are built from the Go modules that hack/kube pins: minutes once for each, without root. They lie in the
# cache directory under a stamp of those pins, of the Go version and of how they are built. WEIR_CACHE moves
# the cache directory. Without arguments, a KUBEBUILDER_ASSETS that is set already is printed as it is.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -eq 0 ]; then
  if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
    echo "$KUBEBUILDER_ASSETS"
    exit 0
  fi
  set -- etcd kube-apiserver kubectl
fi
if [ -n "${HOME:-}" ]; then
  default_cache=${XDG_CACHE_HOME:-$HOME/.cache}/weir
else
  default_cache=$PWD/.cache
fi
cache=${WEIR_CACHE:-$default_cache}

stamp=$({ go env GOVERSION GOOS GOARCH; cat hack/kube/go.mod hack/kube/go.sum hack/kube.sh; } | git hash-object --stdin | cut -c 1-12)
folder=$cache/kube-$stamp
missing=()
for program in "$@"; do
  [ -x "$folder/$program" ] || missing+=("$program")
done
if [ "${#missing[@]}" -gt 0 ]; then
  echo "building ${missing[*]} from hack/kube, which takes some minutes; later runs find them in $folder" >&2
  mkdir -p "$folder"
  # Built beside their place and moved there in one step: another make may be doing the same.
  temporary=$(mktemp -d "$cache/kube-build.XXXXXX")
  trap 'rm -rf "$temporary"' EXIT
  cd hack/kube
  export CGO_ENABLED=0
  version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
  IFS=. read -r major minor _ <<<"${version#v}"
  # Without these Kubernetes' programs call themselves v0.0.0 and clients think them older than they are.
  stamps=""
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    stamps+=" -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor"
    stamps+=" -X $package.gitTreeState=clean -X $package.gitCommit=module -X $package.buildDate=1970-01-01T00:00:00Z"
  done
  for program in "${missing[@]}"; do
    flags="-s -w"
    case $program in
      etcd) package=go.etcd.io/etcd/server/v3 ;;
      coredns) package=github.com/coredns/coredns ;;
      helm) package=helm.sh/helm/v4/cmd/helm ;;
      *) package=k8s.io/kubernetes/cmd/$program flags+=$stamps ;;
    esac
    nice -n 19 go build -trimpath -buildvcs=false -ldflags "$flags" -o "$temporary/$program" "$package"
    mv "$temporary/$program" "$folder/$program"
  done
fi
echo "$folder"
