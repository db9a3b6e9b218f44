#!/usr/bin/env bash
# Signs what hack/release-check.sh has left in a folder, and says how it was made.
#
#   hack/sign.sh provenance [FOLDER]           writes provenance.intoto.json: which commit and Go made the files of SHA256SUMS
#   hack/sign.sh sign [FOLDER]                 signs SHA256SUMS and the provenance, as FILE.bundle
#   hack/sign.sh verify [FOLDER]               checks both, and every file against SHA256SUMS
#   hack/sign.sh image REFERENCE@sha256:…      signs a published image or chart, and attests its provenance and materials
#
# It signs with cosign: without a key with the identity of whoever runs it, or of the workflow; COSIGN_KEY names a private key, and
# COSIGN_PUBLIC_KEY the public one to verify with. To verify without a key, IDENTITY and ISSUER say whose it has to be.
# FOLDER is bin/release unless it is named. docs/internals/releasing.md has the order of things.
set -euo pipefail
cd "${SIGN_ROOT:-$(dirname "$0")/..}"

cosign=${COSIGN:-cosign}
what=${1:-}
folder=${2:-bin/release}
signed=(SHA256SUMS provenance.intoto.json)

# subjects prints SHA256SUMS as the subjects of a statement.
subjects() {
  awk '{ sub(/^\.\//, "", $2); printf "%s{\"name\":\"%s\",\"digest\":{\"sha256\":\"%s\"}}", (NR > 1 ? "," : ""), $2, $1 }' "$folder/SHA256SUMS"
}

# provenance writes SLSA's predicate, version 1, in an in-toto statement.
provenance() {
  local revision epoch
  [ -s "$folder/SHA256SUMS" ] || { echo "$folder/SHA256SUMS is missing: run make release-check first" >&2; return 1; }
  revision=${REVISION:-$(git rev-parse HEAD)}
  epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
  cat >"$folder/predicate.json" <<END
{"buildDefinition":{"buildType":"https://github.com/weir-dev/weir/blob/main/docs/internals/releasing.md#provenance",
"externalParameters":{"version":"${VERSION:?must be the version that is released, as in v0.2.0}"},
"internalParameters":{"sourceDateEpoch":$epoch},
"resolvedDependencies":[{"uri":"git+https://github.com/weir-dev/weir","digest":{"gitCommit":"$revision"}},
{"uri":"pkg:golang/stdlib@$(sed -n 's/^ARG GO_VERSION=//p' Dockerfile)"}]},
"runDetails":{"builder":{"id":"${BUILDER:-https://github.com/weir-dev/weir/blob/main/hack/release-check.sh}"}}}
END
  cat >"$folder/provenance.intoto.json" <<END
{"_type":"https://in-toto.io/Statement/v1","subject":[$(subjects)],
"predicateType":"https://slsa.dev/provenance/v1","predicate":$(cat "$folder/predicate.json")}
END
}

sign() {
  local file
  for file in "${signed[@]}"; do
    "$cosign" sign-blob --yes ${COSIGN_KEY:+--key "$COSIGN_KEY"} --bundle "$folder/$file.bundle" "$folder/$file" >/dev/null
    echo "$folder/$file.bundle"
  done
}

verify() {
  local file whose
  if [ -n "${COSIGN_PUBLIC_KEY:-}" ]; then
    whose=(--key "$COSIGN_PUBLIC_KEY")
  else
    whose=(--certificate-identity "${IDENTITY:?must say who signs, where COSIGN_PUBLIC_KEY is not set}" --certificate-oidc-issuer "${ISSUER:?must say who vouches for IDENTITY}")
  fi
  for file in "${signed[@]}"; do
    "$cosign" verify-blob "${whose[@]}" --bundle "$folder/$file.bundle" "$folder/$file"
  done
  (cd "$folder" && sha256sum --check --strict --quiet SHA256SUMS)
}

image() {
  local reference=$1 program architecture
  if ! [[ $reference =~ @sha256:[0-9a-f]{64}$ ]]; then
    echo "$reference must be a digest, as in ghcr.io/weir-dev/weir@sha256:…: a tag may be another image by now" >&2
    return 2
  fi
  folder=bin/release
  "$cosign" sign --yes ${COSIGN_KEY:+--key "$COSIGN_KEY"} "$reference"
  # attest takes the predicate alone, and makes the statement about the image itself.
  "$cosign" attest --yes ${COSIGN_KEY:+--key "$COSIGN_KEY"} --type slsaprovenance1 --predicate "$folder/predicate.json" "$reference"
  for program in weir-operator collector; do
    for architecture in amd64 arm64; do
      "$cosign" attest --yes ${COSIGN_KEY:+--key "$COSIGN_KEY"} --type cyclonedx \
        --predicate "$folder/$program-linux-$architecture.cdx.json" "$reference"
    done
  done
}

case $what in
  provenance) provenance ;;
  sign) sign ;;
  verify) verify ;;
  image) image "${2:?must be the published image, by digest}" ;;
  *)
    echo "usage: hack/sign.sh provenance|sign|verify [FOLDER], or hack/sign.sh image REFERENCE@sha256:…" >&2
    exit 2
    ;;
esac
