#!/usr/bin/env bash
# Builds programs for container images and archives: static, stamped with a version, and the same bytes wherever and whenever
# the same Go builds the same source. The Dockerfile and hack/image.sh both build with this.
#
#   [GOOS=…] [GOARCH=…] hack/static.sh VERSION FOLDER PACKAGE…
#
# The programs lie in FOLDER afterwards, named after their packages; the root's is weir-operator.
set -euo pipefail

version=$1
folder=$2
shift 2
# What a machine's settings could change in the bytes is set here.
export CGO_ENABLED=0 GOFLAGS=-mod=readonly GOEXPERIMENT='' GOAMD64=v1 GOARM64=v8.0 GOFIPS140=off GOWORK=off
mkdir -p "$folder"
for package in "$@"; do
  name=${package##*/}
  if [ "$package" = . ]; then name=weir-operator; fi
  go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$version" -o "$folder/$name" "$package"
done
