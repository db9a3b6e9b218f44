#!/usr/bin/env bash
# Runs a command as a named phase and says how many seconds it took.
#
#   hack/phase.sh NAME COMMAND [ARGUMENT…]
#
# The command's exit status is handed on.
set -uo pipefail

name=$1
shift
start=$SECONDS
echo "==> $name"
"$@"
status=$?
if [ "$status" -eq 0 ]; then
  echo "==> $name: ok, $((SECONDS - start)) s"
else
  echo "==> $name: FAILED with status $status, $((SECONDS - start)) s" >&2
fi
exit "$status"
