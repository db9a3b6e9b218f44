#!/usr/bin/env bash
# Serves config/samples on this machine: `weir dev`, and the receiver that the samples' webhook points to.
# Both must have been built; `make run` does it.
#
#   [HOOK=HOST:PORT] [CLICKHOUSE=1] hack/run.sh [WEIR_DEV_FLAG…]
#
# HOOK moves the receiver elsewhere than to the samples' 127.0.0.1:9099, and the samples' webhook with it. CLICKHOUSE keeps
# events in a ClickHouse as well, the one of hack/clickhouse.sh, with its data below the state directory.
#
# Ctrl-C or SIGTERM ends both: first weir, which drains its deliveries, then the receiver that takes them. A
# second Ctrl-C ends weir without the drain.
set -euo pipefail
cd "$(dirname "$0")/.."

samples=config/samples
address=127.0.0.1:9099 # where the samples' webhook points to
hook=${HOOK:-$address}

# The samples' signing secret, read from there so that it stands in one place.
WEIR_WEBHOOK_SECRET=$(sed -n 's/^ *signingSecret: *"\{0,1\}\(whsec_[A-Za-z0-9+/=]*\)"\{0,1\} *$/\1/p' "$samples"/*.yaml | head -n 1)
if [ -z "$WEIR_WEBHOOK_SECRET" ]; then
  echo "run: no Secret in $samples has a signingSecret that begins with whsec_" >&2
  exit 1
fi
export WEIR_WEBHOOK_SECRET

if [ -n "${CLICKHOUSE:-}" ]; then
  hack/clickhouse.sh >/dev/null # weir dev finds it where that leaves it
  set -- --clickhouse own "$@"
fi

receiver='' weir=''
scratch=$(mktemp -d)
finish() {
  if [ -n "$receiver" ]; then
    kill -TERM "$receiver" 2>/dev/null || true
    wait "$receiver" 2>/dev/null || true
  fi
  rm -rf "$scratch"
}
interrupt() {
  if [ -z "$weir" ]; then exit 0; fi
  kill -TERM "$weir" 2>/dev/null || true
}
trap finish EXIT
trap interrupt INT TERM HUP

# Job control gives each of them a process group of its own: a Ctrl-C then reaches this script alone, and weir
# gets one signal, by which it drains, rather than two, by which it would end at once.
set -m

if [ "$hook" != "$address" ]; then
  mkdir "$scratch/samples"
  for file in "$samples"/*.yaml; do
    sed "s|http://$address/|http://$hook/|" "$file" >"$scratch/samples/${file##*/}"
  done
  samples=$scratch/samples
fi

bin/receiver --listen "$hook" --ready-file "$scratch/ready" </dev/null &
receiver=$!
until [ -e "$scratch/ready" ]; do
  kill -0 "$receiver" 2>/dev/null || { # it has said why
    echo "run: the receiver is moved with HOOK, as in: make run HOOK=127.0.0.1:9199" >&2
    exit 1
  }
  sleep 0.05
done

bin/weir dev -f "$samples" --egress-allow-cidr 127.0.0.0/8 "$@" </dev/null &
weir=$!
# A signal ends the wait early; weir has then been told, and is waited for again.
status=0
wait "$weir" || status=$?
while kill -0 "$weir" 2>/dev/null; do
  status=0
  wait "$weir" || status=$?
done
if [ "$status" -ne 0 ]; then
  echo "run: flags of weir dev are passed with RUN_ARGS, as in: make run RUN_ARGS='--listen 127.0.0.1:8081'" >&2
fi
exit "$status"
