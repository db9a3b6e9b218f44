#!/usr/bin/env bash
# Packs container images without a container engine.
#
#   hack/image.sh [-o FOLDER] NAME…
#
# NAME is one of these; each becomes FOLDER/NAME.tar, which is bin/images/NAME.tar unless said otherwise:
#
#   weir       the product: /weir-operator, and /collector, the tenants' pods    $IMG, else ghcr.io/weir-dev/weir:VERSION
#   receiver   hack/receiver, the customer's end of a Webhook platform                weir.test/receiver:dev
#   redis      redis-server and redis-cli of Debian's package, with their libraries   weir.test/redis:dev
#   coredns    hack/kube's coredns                                                    weir.test/coredns:dev
#   pause      what holds a pod's namespaces open                                     weir.test/pause:dev
#
#   hack/image.sh [-o FOLDER] release
#
# makes FOLDER/weir.oci.tar as well: the product for linux/amd64 and linux/arm64, as registries' tools take it.
#
#   hack/image.sh pack -o FILE -tag REFERENCE -file PROGRAM:/program -entrypoint /program [FLAG…]
#
# packs a program of your own; -h behind pack lists the flags, and hack/static.sh builds programs that can stand alone in
# an image.
#
# The tar files are as `docker save` writes them, for this machine's architecture: `ctr -n k8s.io images import FILE`,
# `docker load -i FILE` (Docker 23 or newer, for zstd) and `kind load image-archive FILE` take them. For each file a
# line goes to the standard output: REFERENCE FILE DIGEST. The digest is the image's id; for the OCI layout, that of the
# manifest list. Everything else that is said goes to the standard error. Relative paths are relative to the checkout.
#
# VERSION stamps the binaries: what `git describe` says unless it is set; the image's tag is without its v. REVISION is the
# last commit unless it is set. The time of everything in an image is that of the last commit, unless SOURCE_DATE_EPOCH is
# set. The same source, version, revision, time and Go make the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."

# program NAME packs the static program of that name in $scratch.
program() {
  "$tool" pack -o "$folder/$1.tar" -tag "weir.test/$1:dev" -file "$scratch/$1:/$1" -entrypoint "/$1"
}

weir() {
  local platform flags=(-o "$folder/weir.tar")
  local platforms=("linux/$(go env GOHOSTARCH)")
  if [ "$1" = release ]; then
    platforms=(linux/amd64 linux/arm64)
    flags+=(-oci "$folder/weir.oci.tar")
  fi
  for platform in "${platforms[@]}"; do
    GOOS=linux GOARCH=${platform#linux/} hack/static.sh "$VERSION" "$folder/${platform/\//-}" . ./collector >&2
    flags+=(-platform "$platform")
  done
  "$tool" weir -binaries "$folder" -tag "${IMG:-ghcr.io/weir-dev/weir:${VERSION#v}}" -version "$VERSION" \
    -revision "${REVISION:-$(git rev-parse HEAD)}" "${flags[@]}"
}

receiver() {
  GOOS=linux hack/static.sh "$VERSION" "$scratch" ./hack/receiver >&2
  program receiver
}

coredns() {
  local built
  built=$(hack/kube.sh coredns)
  cp "$built/coredns" "$scratch/coredns"
  program coredns
}

pause() {
  (cd hack/image && GOOS=linux ../static.sh "$VERSION" "$scratch" ./pause) >&2
  program pause
}

# redis packs the redis-server that the tests use and its redis-cli, with the files of this machine that the dynamic linker
# finds for them. So it needs a Linux with glibc: Debian, Ubuntu and their like. There is no shell in it.
redis() {
  local found server libraries file target root=$scratch/redis
  found=$(go run ./hack/findredis)
  server=$(sed -n 1p <<<"$found")
  libraries=$(sed -n 2p <<<"$found")
  mkdir -p "$root/usr/bin" "$root/etc"
  cp -L "$server" "$root/usr/bin/redis-server"
  cp -L "${server%server}cli" "$root/usr/bin/redis-cli" # valkey-server has a valkey-cli beside it
  # A line of ldd is "libm.so.6 => /lib/…/libm.so.6 (0x…)", or the path of the linker itself without an arrow.
  for file in "$root"/usr/bin/*; do
    LD_LIBRARY_PATH=$libraries ldd "$file"
  done | awk '$2 == "=>" { print $3 } $1 ~ "^/" { print $1 }' | sort -u >"$scratch/libraries"
  while read -r file; do
    case $file in
      not) # "libm.so.6 => not found"
        echo "image: a library of $server is missing; this names it: LD_LIBRARY_PATH=$libraries ldd $server" >&2
        return 1
        ;;
      */ld-*) target=$root$file ;; # programs name the linker by its path
      *) target=$root/usr/lib/${file##*/} ;;
    esac
    mkdir -p "${target%/*}"
    cp -L "$file" "$target"
  done <"$scratch/libraries"
  printf 'root:x:0:0::/:\nredis:x:999:999::/data:\n' >"$root/etc/passwd"
  "$tool" pack -o "$folder/redis.tar" -tag weir.test/redis:dev -tree "$root" -dir /data:999:999 -user 999:999 \
    -entrypoint /usr/bin/redis-server
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tool=$scratch/image
(cd hack/image && CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$tool" .)
VERSION=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || echo dev)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

if [ "${1:-}" = pack ]; then
  "$tool" "$@"
  exit
fi
folder=bin/images
if [ "${1:-}" = -o ]; then
  folder=${2:?-o needs a folder}
  shift 2
fi
if [ $# -eq 0 ]; then
  sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' hack/image.sh >&2
  exit 2
fi
for name in "$@"; do
  case $name in
    weir | release) weir "$name" ;;
    receiver | redis | coredns | pause) "$name" ;;
    *)
      echo "image: there is no $name; the names are weir, receiver, redis, coredns, pause and release" >&2
      exit 2
      ;;
  esac
done
