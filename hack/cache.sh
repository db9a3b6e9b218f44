# Sets cache to the folder that everything fetched or built for development is kept in: $WEIR_CACHE, else weir in the user's
# cache directory, else .cache in the checkout. It is sourced from there.
# shellcheck shell=bash disable=SC2034 # it is used where this is sourced

if [ -n "${WEIR_CACHE:-}" ]; then
  cache=$WEIR_CACHE
elif [ -n "${HOME:-}" ]; then
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/weir
else
  cache=$PWD/.cache
fi
