#!/usr/bin/env bash
# Packs the command `weir` for people's machines: for each platform FOLDER/weir-VERSION-OS-ARCH.tar.gz, with the program,
# its names as kubectl's plugin (links), Weir's licence and those of what is linked; FOLDER/weir.yaml, krew's manifest of
# the plugin; and FOLDER/SHA256SUMS. The binaries stay in FOLDER/OS-ARCH.
#
#   [VERSION=vX.Y.Z] [PLATFORMS='OS/ARCH…'] hack/dist.sh [FOLDER]
#
# VERSION is what `git describe` says unless it is set, PLATFORMS Linux and macOS on amd64 and arm64, FOLDER bin/dist. The
# same source, version, commit's time and Go make the same bytes. The archive of this machine's platform is unpacked again,
# and its program has to name the version.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1:-bin/dist}
VERSION=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || echo dev)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
read -ra platforms <<<"${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

mkdir -p "$folder"
binaries=() archives=()
for platform in "${platforms[@]}"; do
  GOOS=${platform%/*} GOARCH=${platform#*/} hack/static.sh "$VERSION" "$folder/${platform/\//-}" ./cli/weir
  binaries+=("$folder/${platform/\//-}/weir")
done
(cd hack/image && CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$scratch/image" .)
"$scratch/image" materials -o "$scratch" -version "$VERSION" "${binaries[@]}"

for platform in "${platforms[@]}"; do
  name=weir-${VERSION#v}-${platform/\//-}
  mkdir "$scratch/$name"
  install -m 755 "$folder/${platform/\//-}/weir" "$scratch/$name/weir"
  ln -s weir "$scratch/$name/kubectl-weir"
  ln -s weir "$scratch/$name/kubectl_complete-weir"
  install -m 644 LICENSE "$scratch/licences.txt" "$scratch/$name"
  tar -C "$scratch" --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -cf - "$name" |
    gzip -9n >"$folder/$name.tar.gz"
  archives+=("$name.tar.gz")
done
(cd "$folder" && sha256sum "${archives[@]}" >SHA256SUMS && sha256sum --check --strict --quiet SHA256SUMS)

{
  cat <<MANIFEST
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: weir
spec:
  version: v${VERSION#v}
  homepage: https://github.com/weir-dev/weir
  shortDescription: How Weir's Properties stand, and their events
  description: |
    Says how a Property of Weir stands and what is wrong with it, lists, follows and exports its events, delivers again,
    and makes keys and tokens, with the rights that you have in the cluster.
  platforms:
MANIFEST
  for platform in "${platforms[@]}"; do
    name=weir-${VERSION#v}-${platform/\//-}
    cat <<MANIFEST
  - selector:
      matchLabels: {os: ${platform%/*}, arch: ${platform#*/}}
    uri: https://github.com/weir-dev/weir/releases/download/v${VERSION#v}/$name.tar.gz
    sha256: $(sed -n "s/  $name.tar.gz\$//p" "$folder/SHA256SUMS")
    bin: kubectl-weir
    files:
    - {from: $name/weir, to: kubectl-weir}
    - {from: $name/LICENSE, to: .}
    - {from: $name/licences.txt, to: .}
MANIFEST
  done
} >"$folder/weir.yaml"

own=weir-${VERSION#v}-$(go env GOHOSTOS)-$(go env GOHOSTARCH)
if [ -e "$folder/$own.tar.gz" ]; then
  mkdir "$scratch/unpacked"
  tar -C "$scratch/unpacked" -xzf "$folder/$own.tar.gz"
  found=$("$scratch/unpacked/$own/weir" --version)
  if [ "$found" != "$VERSION" ]; then
    echo "dist: weir --version in $own.tar.gz says $found, want $VERSION" >&2
    exit 1
  fi
  if [[ $("$scratch/unpacked/$own/kubectl-weir" --help) != *'kubectl weir status'* ]]; then
    echo "dist: kubectl-weir in $own.tar.gz does not know how it is called" >&2
    exit 1
  fi
fi
cat "$folder/SHA256SUMS"
