#!/usr/bin/env bash
# Writes what the dashboard's page takes of others, collector/dashboard/static/packages: Preact with htm, and uPlot, each a minified
# module of its own with its licence beside it. (A folder vendor would be missing from the module's archive, which Go makes without
# such.) hack/dashboard/package-lock.json pins the packages with their digests.
#
#   hack/vendor.sh ESBUILD     `make generate` runs it, `make verify` proves that what is committed is what it makes
set -euo pipefail
cd "$(dirname "$0")/.."

esbuild=${1:?the program esbuild}
target=collector/dashboard/static/packages
packages=$(hack/npm.sh hack/dashboard)/node_modules

rm -rf "$target"
mkdir -p "$target"
bundle() {
  NODE_PATH=$packages "$esbuild" --log-level=warning --bundle --minify --format=esm --target=es2022 --legal-comments=none "$@"
}
bundle hack/dashboard/preact.js --outfile="$target/preact.js"
bundle "$packages/uplot/dist/uPlot.esm.js" --outfile="$target/uplot.js"
cp "$packages/uplot/dist/uPlot.min.css" "$target/uplot.css"
for package in htm preact uplot; do
  cp "$packages/$package/LICENSE" "$target/$package.LICENSE.txt"
done
chmod 644 "$target"/*
