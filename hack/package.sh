#!/usr/bin/env bash
# Prints the path of a program that the distribution packages: the one on the PATH, else its package, unpacked below the cache
# directory without root. Nothing is installed. WEIR_CACHE moves the cache directory.
#
#   hack/package.sh wrk        the load generator of the benchmarks
#   hack/package.sh chromium   the browser that the tests read the API's documentation with
#   hack/package.sh qemu-aarch64   runs programs of linux/arm64 on other processors
#   hack/package.sh valkey-server   what tests start in Redis's place where its folder is on the PATH; of Debian 12's backports, or newer
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/cache.sh

# The package, the program in it, and what it may be called on the PATH.
case ${1:-} in
  wrk) package=wrk program=usr/bin/wrk names=(wrk) ;;
  chromium)
    package=chromium-headless-shell program=usr/lib/chromium/chromium-headless-shell
    names=(chromium-headless-shell chromium google-chrome)
    ;;
  valkey-server) package=valkey-server program=usr/bin/valkey-server names=(valkey-server) ;;
  qemu-aarch64) package=qemu-user-static program=usr/bin/qemu-aarch64-static names=(qemu-aarch64-static qemu-aarch64) ;;
  *)
    sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' hack/package.sh >&2
    exit 2
    ;;
esac

for name in "${names[@]}"; do
  if command -v "$name"; then
    exit
  fi
done
missing="there is no $1 on the PATH; install it under one of these names: ${names[*]}"
if ! command -v apt-get >/dev/null; then
  echo "package: $missing" >&2
  exit 1
fi

# backports lets apt see the release's backports, where the release itself does not have the package.
backports() {
  local codename
  codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
  if apt-cache show "$package" >/dev/null 2>&1; then return; fi
  printf 'deb http://deb.debian.org/debian %s main\n' "$codename" "$codename-backports" >"$1/sources.list"
  printf 'Dir::Etc::sourcelist "%s";\nDir::Etc::sourceparts "-";\n' "$1/sources.list" >"$1/apt.conf"
  export APT_CONFIG=$1/apt.conf
}

# wrap writes the script that runs the program with the libraries and the fonts that were unpacked with it.
wrap() {
  local libraries fonts=etc/fonts/fonts.conf
  libraries=$(find "$scratch/tree" -name '*.so*' -printf "$root/%P\n" | xargs -r -n 1 dirname | sort -u | paste -sd :)
  {
    echo '#!/bin/sh'
    echo "export LD_LIBRARY_PATH='$libraries'\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
    if [ -e "$scratch/tree/$fonts" ]; then
      sed -i "s|<dir>/usr/|<dir>$root/usr/|" "$scratch/tree/$fonts"
      echo "export FONTCONFIG_FILE='$root/$fonts'"
    fi
    echo "exec '$root/$program' \"\$@\""
  } >"$scratch/tree/$1"
  chmod +x "$scratch/tree/$1"
}

root=$cache/packages/$package-$(. /etc/os-release && echo "$ID-$VERSION_ID")-$(dpkg --print-architecture)
mkdir -p "${root%/*}"
exec 9>"$root.lock"
flock 9 # another make may be doing the same
if [ ! -x "$root/$1" ]; then
  echo "fetching the distribution's package $package into $root" >&2
  scratch=$(mktemp -d "$root.XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  if [ "$package" = valkey-server ]; then backports "$scratch"; fi
  if ! go run ./hack/unpack "$scratch/tree" "$package" >&2; then
    echo "package: $package could not be fetched, and $missing" >&2
    exit 1
  fi
  wrap "$1"
  rm -rf "$root"
  mv "$scratch/tree" "$root"
fi
echo "$root/$1"
