#!/usr/bin/env bash
# Prints the path of a ClickHouse server for tests and development, which is started with: server --config-file=FILE. It is the
# clickhouse on the PATH, else hack/clickhouse, built below the cache directory, with ClickHouse's engine from the npm
# registry (libchdb: 170 MB to fetch, 560 MB on the disk), pinned by its digest. WEIR_CACHE moves the cache directory.
#
#   hack/clickhouse.sh
#
# To build it takes Go and a C compiler, which the race detector needs as well; the engine is for Linux on amd64 with glibc.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/cache.sh

if command -v clickhouse; then
  exit
fi
package=@chdb/lib-linux-x64-gnu
version=26.5.3
# The SHA-512 that the registry has as dist.integrity, in hexadecimal digits.
digest=7cfacb991b79328a2bf721b3e266b36eb3637b8b7b5fd281da64c6917156471441b3688acbcca1ea3c75d71b1ad10af788314c53fc87a9df9b55d6095eedd069

if [ "$(uname -sm)" != 'Linux x86_64' ]; then
  echo "clickhouse: there is no clickhouse on the PATH, and no engine for $(uname -sm) to be fetched; install ClickHouse" >&2
  exit 1
fi

mkdir -p "$cache/clickhouse"
exec 9>"$cache/clickhouse/lock"
flock 9 # another make may be doing the same

engine=$cache/clickhouse/engine-$version
if [ ! -e "$engine/libchdb.so" ]; then
  echo "fetching ClickHouse's engine, $package $version, into $engine" >&2
  scratch=$(mktemp -d "$engine.XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  address=https://registry.npmjs.org/$package/-/${package#*/}-$version.tgz
  if command -v curl >/dev/null; then
    curl --fail --silent --show-error --location --retry 3 --output "$scratch/package.tgz" "$address" >&2
  else
    /usr/lib/apt/apt-helper download-file "$address" "$scratch/package.tgz" >&2
  fi
  echo "$digest  $scratch/package.tgz" | sha512sum --check --quiet - >&2
  tar -xzf "$scratch/package.tgz" -C "$scratch" package/libchdb.so
  rm -rf "$engine"
  mv -T "$scratch/package" "$engine" # in one step, and only once it is whole
fi

stamp=$({ go version; echo "$version"; cat hack/clickhouse/*.go hack/clickhouse/go.mod; } | git hash-object --stdin | cut -c 1-12)
server=$cache/clickhouse/server-$stamp
if [ ! -x "$server/clickhouse" ]; then
  echo "building hack/clickhouse into $server" >&2
  mkdir -p "$server"
  (cd hack/clickhouse && CGO_ENABLED=1 go build -trimpath -buildvcs=false -o "$server/clickhouse.new" .) >&2
  ln -sfn "../engine-$version/libchdb.so" "$server/libchdb.so"
  mv "$server/clickhouse.new" "$server/clickhouse"
fi
# Where weir dev finds it: see collector/clickhouseserver.
ln -sfn "$(basename "$server")" "$cache/clickhouse/current"
echo "$server/clickhouse"
