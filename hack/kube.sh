#!/usr/bin/env bash
# Prints a folder with Kubernetes' own programs, and builds those first that are not there yet.
#
#   KUBEBUILDER_ASSETS=$(hack/kube.sh)                       # etcd, kube-apiserver and kubectl, which the tests need
#   PATH=$(hack/kube.sh kubectl helm kubelet …):$PATH        # those named, of etcd, coredns, helm and Kubernetes' commands
#
# They are built from the Go modules that hack/kube pins: minutes once for each, without root. They lie in the
# cache directory under a stamp of those pins, of the Go version and of the flags that they are built with. WEIR_CACHE
# moves the cache directory. Without arguments, a KUBEBUILDER_ASSETS that is set already is printed as it is.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -eq 0 ]; then
  if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
    echo "$KUBEBUILDER_ASSETS"
    exit 0
  fi
  set -- etcd kube-apiserver kubectl
fi
. hack/cache.sh

# How they are built. Without what -X sets, Kubernetes' programs call themselves v0.0.0 and clients think them older than they are.
export CGO_ENABLED=0
build=(go build -trimpath -buildvcs=false)
link="-s -w"
version=$(awk '$1 == "k8s.io/kubernetes" { print $2 }' hack/kube/go.mod)
: "${version:?hack/kube/go.mod pins no k8s.io/kubernetes}"
IFS=. read -r major minor _ <<<"${version#v}"
link_kubernetes=$link
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  link_kubernetes+=" -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor"
  link_kubernetes+=" -X $package.gitTreeState=clean -X $package.gitCommit=module -X $package.buildDate=1970-01-01T00:00:00Z"
done

stamp=$({
  go env GOVERSION GOOS GOARCH CGO_ENABLED
  echo "${build[*]} $link $link_kubernetes"
  cat hack/kube/go.mod hack/kube/go.sum
} | git hash-object --stdin | cut -c 1-12)
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
  for program in "${missing[@]}"; do
    flags=$link
    case $program in
      etcd) package=go.etcd.io/etcd/server/v3 ;;
      coredns) package=github.com/coredns/coredns ;;
      helm) package=helm.sh/helm/v4/cmd/helm ;;
      *) package=k8s.io/kubernetes/cmd/$program flags=$link_kubernetes ;;
    esac
    nice -n 19 "${build[@]}" -ldflags "$flags" -o "$temporary/$program" "$package"
    mv "$temporary/$program" "$folder/$program"
  done
fi
echo "$folder"
