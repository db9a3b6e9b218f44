#!/usr/bin/env bash
# Checks what is to be released and leaves what it has checked in a folder: the images of all platforms, the archives of
# the command weir, a bill of materials for each binary, the licences of what is linked, the chart, and their checksums.
#
#   [VERSION=vX.Y.Z] [GOVULNDB=URL] hack/release-check.sh [FOLDER]
#
# VERSION is v and the chart's appVersion unless it is set, and must agree with it. FOLDER is bin/release unless it is named.
# GOVULNDB is another place of the Go vulnerability database than https://vuln.go.dev, such as file:///srv/vulndb.
#
# Every check is made even where one before it has failed; the exit status is 0 only where none has. `make release-check`
# runs `make verify lint` first. It takes minutes: the binaries are built a second time without a build cache.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1:-bin/release}
chart=charts/weir/Chart.yaml
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# chart_field NAME prints a field of Chart.yaml, without quotes.
chart_field() {
  sed -n "s/^$1: *[\"']\{0,1\}\([^\"' ]*\)[\"']\{0,1\} *\$/\1/p" "$chart"
}

VERSION=${VERSION:-v$(chart_field appVersion)}
REVISION=${REVISION:-$(git rev-parse HEAD)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export VERSION REVISION SOURCE_DATE_EPOCH
unset IMG

# versions: the number that is released, the chart's, its image's tag and Go's are one each.
versions() {
  local status=0 wanted=${VERSION#v} field found
  if ! [[ $VERSION =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; then
    echo "VERSION=$VERSION must be vX.Y.Z or vX.Y.Z-PRERELEASE" >&2
    status=1
  fi
  for field in version appVersion; do
    found=$(chart_field "$field")
    if [ "$found" != "$wanted" ]; then
      echo "$chart has $field: ${found:-nothing}; it must be $wanted to release $VERSION" >&2
      status=1
    fi
  done
  found=$(sed -n 's|^ *image: ghcr.io/weir-dev/weir:||p' config/manager/manager.yaml)
  if [ "$found" != "$wanted" ]; then
    echo "config/manager/manager.yaml has the image's tag ${found:-nothing}; it must be $wanted to release $VERSION" >&2
    status=1
  fi
  wanted=$(sed -n 's/^ARG GO_VERSION=//p' Dockerfile)
  found=$(go env GOVERSION)
  if [ "$found" != "go$wanted" ]; then
    echo "the Dockerfile builds with Go $wanted and this machine with ${found#go}; they must be the same" >&2
    status=1
  fi
  return "$status"
}

# digests: what is taken from other people's registries is pinned by digest.
digests() {
  hack/digests.sh check
}

# lifetimes: no version of a platform's interface that is spoken ends within 90 days.
lifetimes() {
  go run ./hack/lifetimes
}

# image: the packer's tests, which compare the Dockerfile, and the images of all platforms.
image() {
  (cd hack/image && go vet ./... && go test ./...) || return
  hack/image.sh -o "$folder" release | tee "$scratch/first"
}

# archives: the command weir for people's machines; the one for this machine says the version that is released.
archives() {
  hack/dist.sh "$folder" | tee "$scratch/first-archives"
}

# emulated: what is built for another processor than this machine's runs.
emulated() {
  mkdir -p "$scratch/arm64" && cp "$folder"/linux-arm64/{weir,weir-operator,collector} "$scratch/arm64" && hack/emulated.sh "$scratch/arm64"
}

# installable: `go install MODULE/cli/weir@latest` makes the command of a module as a proxy would serve it, and it says the version.
installable() {
  local module=github.com/weir-dev/weir proxy=$scratch/proxy served nested found
  served=$proxy/$module/@v
  mkdir -p "$served" || return
  cp go.mod "$served/$VERSION.mod" || return
  printf '{"Version":"%s","Time":"%s"}' "$VERSION" "$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)" >"$served/$VERSION.info" || return
  echo "$VERSION" >"$served/list" || return
  # What has a go.mod of its own is another module, and not in this one's archive.
  nested=$(git ls-files '*/go.mod' | sed 's|go\.mod$||; s|^|:(exclude)|')
  mapfile -t nested <<<"$nested"
  git archive --format=zip --prefix="$module@$VERSION/" -o "$served/$VERSION.zip" HEAD -- . "${nested[@]}" || return
  # In a module cache of its own, so that the machine's never has this version; what it has besides is taken from there.
  GOBIN=$scratch/bin GOMODCACHE=$scratch/modules GOFLAGS='-modcacherw -trimpath' CGO_ENABLED=0 GONOSUMDB=$module \
    GOPROXY="file://$proxy,file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)" \
    go -C "$scratch" install "$module/cli/weir@latest" || return
  found=$("$scratch/bin/weir" --version) || return
  if [ "$found" != "$VERSION" ]; then
    echo "go install makes a weir that says $found, want $VERSION" >&2
    return 1
  fi
}

# reproducible: another folder and an empty build cache make the same image and archives.
reproducible() {
  mkdir -p "$scratch/elsewhere" "$scratch/cache"
  git ls-files -co --exclude-standard -z | tar --null --files-from=- --ignore-failed-read -cf - | tar -C "$scratch/elsewhere" -xf - || return
  (cd "$scratch/elsewhere" && GOCACHE=$scratch/cache hack/image.sh -o again release) >"$scratch/second" || return
  # Of the archives those for Linux: what they share with the image has just been compiled.
  (cd "$scratch/elsewhere" && GOCACHE=$scratch/cache PLATFORMS='linux/amd64 linux/arm64' hack/dist.sh again) \
    >"$scratch/second-archives" || return
  # Each line is REFERENCE FILE DIGEST.
  if ! diff <(awk '{ print $1, $3 }' "$scratch/first") <(awk '{ print $1, $3 }' "$scratch/second"); then
    echo "built twice, the images differ" >&2
    return 1
  fi
  if ! diff <(grep linux "$scratch/first-archives") "$scratch/second-archives"; then
    echo "built twice, the archives differ" >&2
    return 1
  fi
}

# materials: what the binaries are made of, and the chart.
materials() {
  local helm
  (cd hack/image && CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$scratch/image" .) || return
  "$scratch/image" materials -o "$folder" -version "$VERSION" "$folder"/linux-*/* "$folder"/darwin-*/* || return
  helm=$(hack/kube.sh helm)/helm || return
  "$helm" package charts/weir --destination "$folder" || return
  # The images as archives of one platform are for tests; the rest is what is published.
  (cd "$folder" && sha256sum weir.oci.tar ./*.cdx.json "weir-${VERSION#v}"-*.tar.gz licences.txt "weir-${VERSION#v}.tgz" weir.yaml >SHA256SUMS) || return
  hack/sign.sh provenance "$folder"
}

# vulnerabilities: none is known in what the binaries call.
vulnerabilities() {
  local tool status=0
  tool=$(hack/tool.sh hack/tools golang.org/x/vuln/cmd/govulncheck) || return
  "$tool" ${GOVULNDB:+-db "$GOVULNDB"} . ./collector ./cli/weir || status=$?
  case $status in
    0) ;;
    3) echo "known vulnerabilities are called: see above" >&2 ;;
    *)
      echo "NOT CHECKED: govulncheck has not done its work, so nothing is known about vulnerabilities in Go $(go env GOVERSION) and the" >&2
      echo "  $(go version -m "$folder"/linux-amd64/weir-operator | grep -c '^	dep	') modules of weir-operator and collector. Where it could not reach the database at ${GOVULNDB:-https://vuln.go.dev}," >&2
      echo "  run this on a machine that can, or name a copy: GOVULNDB=file:///srv/vulndb make release-check" >&2
      ;;
  esac
  return "$status"
}

failed=()
for check in versions digests lifetimes image archives emulated installable reproducible materials vulnerabilities; do
  start=$SECONDS
  echo "==> release: $check"
  status=0 # set -e does not hold inside what || follows, which is why the checks return by themselves
  "$check" || status=$?
  if [ "$status" -eq 0 ]; then
    echo "==> release: $check: ok, $((SECONDS - start)) s"
  else
    echo "==> release: $check: FAILED, $((SECONDS - start)) s" >&2
    failed+=("$check")
  fi
done
if [ "${#failed[@]}" -gt 0 ]; then
  echo "not to be released; failed: ${failed[*]}" >&2
  exit 1
fi
echo "$VERSION can be released; docs/internals/releasing.md says how. It lies in $folder:"
ls -l "$folder"
