#!/usr/bin/env bash
# Takes the list of bots from a release of isbot (npm, Unlicense) and writes it to collector/bots/isbot.json.
#
#   hack/isbot.sh VERSION     needs npm; then `go test ./collector/bots` says how well the list does
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?the version of isbot, such as 5.2.3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
(cd "$scratch" && npm pack --silent "isbot@$version" >/dev/null && tar -xzf "isbot-$version.tgz")
{
  printf '{\n"source": "https://www.npmjs.com/package/isbot/v/%s",\n"licence": "Unlicense",\n"patterns": [\n' "$version"
  sed -n '/^var patterns_default = \[$/,/^\];$/p' "$scratch/package/index.mjs" | sed '1d;$d'
  printf ']\n}\n'
} >"$scratch/isbot.json"
mv "$scratch/isbot.json" collector/bots/isbot.json
