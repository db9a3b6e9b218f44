#!/usr/bin/env bash
# Sees the programs of linux/arm64 at work on a machine that is none, by QEMU's emulation of its processor: the command weir
# takes an event, delivers it and answers with it; operator and collector start as far as they do without their files.
#
#   hack/emulated.sh FOLDER
#
# FOLDER has weir, weir-operator and collector of linux/arm64. QEMU is the one on the PATH, else the distribution's.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(realpath "${1:?FOLDER with the programs of linux/arm64}")
emulator=$(hack/package.sh qemu-aarch64)
scratch=$(mktemp -d)
trap 'kill "${pid:-}" 2>/dev/null; wait; rm -rf "$scratch"' EXIT

# The Redis beside it is this machine's: what is emulated starts it as its own child.
{ read -r redis && read -r libraries || true; } < <(go run ./hack/findredis)
export PATH=$(dirname "$redis"):$PATH LD_LIBRARY_PATH=${libraries:-}
unset REDIS_URL

"$emulator" "$folder/collector" -h >/dev/null 2>&1
"$emulator" "$folder/weir-operator" -h >/dev/null 2>&1
(cd "$scratch" && exec "$emulator" "$folder/weir" dev -f "$OLDPWD/config/samples" --listen 127.0.0.1:0) >"$scratch/said" 2>&1 &
pid=$!

# part PATTERN waits for what weir dev says and prints it.
part() {
  local found
  for _ in $(seq 120); do
    if found=$(grep -o -m 1 "$1" "$scratch/said"); then
      echo "$found"
      return
    fi
    if ! kill -0 "$pid" 2>/dev/null; then break; fi
    sleep 1
  done
  echo "emulated: weir dev says nothing of $1:" >&2
  cat "$scratch/said" >&2
  return 1
}

collect=$(part 'http://[0-9.:]*/collect/[A-Za-z0-9_]*')
token=$(part 'Bearer [A-Za-z0-9_]*')
curl -fsS "$collect" -H 'Content-Type: application/json' \
  -d '{"event":"purchase","event_id":"emulated","user":{"email":"jane@example.com"},"data":{"value":49.90,"currency":"EUR","order_id":"7"}}' >/dev/null
for _ in $(seq 60); do
  if curl -fsS "${collect%/collect/*}/api/v1/properties/shop/events" -H "Authorization: $token" | grep -q '"event_id":"emulated".*"status":"delivered"'; then
    echo 'linux/arm64, emulated: an event was taken, delivered and is in the answers'
    exit
  fi
  sleep 1
done
echo 'emulated: the event is not delivered:' >&2
cat "$scratch/said" >&2
exit 1
