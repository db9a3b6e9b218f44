#!/usr/bin/env bash
# Prints the path of wrk, the load generator of the benchmarks: the one on the PATH, else the distribution's
# package, unpacked below the cache directory without root. WEIR_CACHE moves the cache directory.
set -euo pipefail

if command -v wrk; then
  exit
fi
if ! command -v apt-get >/dev/null; then
  echo "the benchmarks need wrk (https://github.com/wg/wrk) on the PATH" >&2
  exit 1
fi
cache=${WEIR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/weir}/wrk
root=$cache/$(. /etc/os-release && echo "$ID-$VERSION_ID")-$(dpkg --print-architecture)
if [ ! -x "$root/wrk" ]; then
  echo "fetching the distribution's wrk package into $root" >&2
  mkdir -p "$cache"
  scratch=$(mktemp -d "$cache/fetch.XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  mkdir -p "$scratch"/{state/lists/partial,cache/archives/partial,tree}
  # A copy of dpkg's status tells apt what is installed already, and lets it lock beside the copy.
  cp /var/lib/dpkg/status "$scratch/state/status"
  options=(-qq -y -o "Dir::State=$scratch/state" -o "Dir::State::lists=$scratch/state/lists"
    -o "Dir::State::status=$scratch/state/status" -o "Dir::Cache=$scratch/cache"
    -o "Dir::Cache::archives=$scratch/cache/archives" -o "Dir::Log=$scratch" -o APT::Sandbox::User= -o Acquire::Languages=none)
  apt-get "${options[@]}" update >&2
  apt-get "${options[@]}" --no-install-recommends --download-only install wrk >&2
  for package in "$scratch"/cache/archives/*.deb; do
    dpkg-deb -x "$package" "$scratch/tree"
  done
  libraries=$(find "$scratch/tree" -name '*.so.*' -printf "$root/%P\n" | xargs -r -n 1 dirname | sort -u | paste -sd :)
  cat >"$scratch/tree/wrk" <<EOF_WRAPPER
#!/bin/sh
LD_LIBRARY_PATH=$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH} exec $root/usr/bin/wrk "\$@"
EOF_WRAPPER
  chmod +x "$scratch/tree/wrk"
  rm -rf "$root"
  mv "$scratch/tree" "$root"
fi
echo "$root/wrk"
