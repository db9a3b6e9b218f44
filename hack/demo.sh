#!/usr/bin/env bash
# Weir in a cluster, from nothing to numbers: the chart is installed, config/samples applied, events are sent through
# the Ingress, and the read API is asked about them. Each step is printed with the seconds since the beginning.
#
#   hack/demo.sh up [--yes]     make demo
#   hack/demo.sh down           make demo-down: put everything back; fine to repeat
#
# The cluster is the first of these that there is:
#
#   - the one of the kubeconfig KUBECONFIG_E2E, with IMG, an image of Weir that its nodes can pull. One namespace is used,
#     weir-demo, and the CustomResourceDefinition of Property; the operator gets rights in that namespace alone.
#   - a new one of kind's, where kind and a container engine are there
#   - a node made by hack/cluster.sh: it needs root on Linux, says what it will do and asks once; --yes, or WEIR_INSTALL=1,
#     is the answer yes. One that is up already is used, and stays up.
#
# It needs Go and curl. WEIR_CACHE moves the cache directory.
set -euo pipefail
cd "$(dirname "$0")/.."

. hack/cache.sh
images=$cache/node-images
record=$cache/demo # which kind of cluster the last `up` used, for `down`: yours, kind, node, or lent for a node that was up already
namespace=weir-demo
kind_cluster=weir-demo
begin=$EPOCHREALTIME

say() { awk -v now="$EPOCHREALTIME" -v begin="$begin" -v text="$*" 'BEGIN { printf "%7.1f s  %s\n", now - begin, text }'; }

fail() {
  echo "demo: $*" >&2
  exit 1
}

# choose_cluster sets $where: yours, kind or node.
choose_cluster() {
  if [ -n "${KUBECONFIG_E2E:-}" ]; then
    [ -n "${IMG:-}" ] || fail "with KUBECONFIG_E2E, IMG has to name an image of Weir that the cluster's nodes can pull"
    where=yours
  elif command -v kind >/dev/null && command -v docker >/dev/null && docker info >/dev/null 2>&1; then
    where=kind
  else
    where=node
  fi
}

# pack_images packs Weir, its Redis and the webhook's receiver. The tag is new each time, so that a second demo runs
# what was built last.
pack_images() {
  IMG=weir.test/weir:demo-$EPOCHSECONDS
  mkdir -p "$images"
  IMG=$IMG hack/image.sh -o "$images" weir redis receiver >/dev/null
  archives=("$images/weir.tar" "$images/redis.tar" "$images/receiver.tar")
  say "images packed: $IMG, Redis, the webhook's receiver"
}

start_cluster() {
  case $where in
    yours)
      export KUBECONFIG=$KUBECONFIG_E2E
      say "using the cluster of $KUBECONFIG"
      ;;
    kind)
      pack_images
      export KUBECONFIG=$cache/demo-kubeconfig
      if ! kind get clusters 2>/dev/null | grep -qx "$kind_cluster"; then
        kind create cluster --name "$kind_cluster" --kubeconfig "$KUBECONFIG" --wait 180s
      fi
      for archive in "${archives[@]}" "$(hack/cluster.sh agent)"; do
        kind load image-archive "$archive" --name "$kind_cluster"
      done
      say "kind's cluster $kind_cluster is up"
      hack/cluster.sh ingress-manifest | kubectl apply --server-side --force-conflicts -f - >/dev/null
      kubectl -n kube-system rollout status deployment/ingress --timeout=120s >/dev/null
      say "an ingress runs in it"
      ;;
    node)
      [ "$(id -u)" -eq 0 ] || fail "there is no kind, and a node of this machine's own needs root; or name a cluster: KUBECONFIG_E2E=… IMG=… make demo"
      pack_images
      if hack/cluster.sh status >/dev/null 2>&1 && [ "$(cat "$record" 2>/dev/null)" != node ]; then
        echo lent >"$record"
      else
        echo node >"$record"
      fi
      hack/cluster.sh up "${archives[@]}" | sed 's/^/    /'
      KUBECONFIG=$(hack/cluster.sh kubeconfig)
      export KUBECONFIG
      say "the node is up"
      ;;
  esac
}

# ours says whether a namespace is the demo's: none is touched that was there before.
ours() { [ "$(kubectl get namespace "$1" --ignore-not-found -o "jsonpath={.metadata.labels.app\.kubernetes\.io/managed-by}")" = "$namespace" ]; }

# definition_owner prints the namespace of the release that the definition of Property is of, "unknown" where it is of none, nothing where there is no
# definition.
definition_owner() {
  local owner
  if kubectl get customresourcedefinition properties.weir.dev >/dev/null 2>&1; then
    owner=$(kubectl get customresourcedefinition properties.weir.dev -o jsonpath='{.metadata.annotations.meta\.helm\.sh/release-namespace}')
    echo "${owner:-unknown}"
  fi
}

claim_namespace() {
  if ! kubectl get namespace "$namespace" >/dev/null 2>&1; then
    kubectl create namespace "$namespace" >/dev/null
    kubectl label namespace "$namespace" "app.kubernetes.io/managed-by=$namespace" >/dev/null
  elif ! ours "$namespace"; then
    fail "the cluster has a namespace $namespace that is not the demo's"
  fi
}

# install_chart installs or upgrades the release. In your cluster it keeps to the one namespace; otherwise the namespace
# is one that enforces the restricted Pod Security Standard.
install_chart() {
  claim_namespace
  local values=(--set "image.repository=${IMG%:*}" --set "image.tag=${IMG##*:}" --set "watchNamespaces={$namespace}")
  if [ "$where" = yours ]; then
    values+=(--set rbac.aggregateRoles=false)
  else
    kubectl label namespace "$namespace" pod-security.kubernetes.io/enforce=restricted --overwrite >/dev/null
    values+=(--set redis.image.repository=weir.test/redis --set redis.image.tag=dev --set "tenants.egressAllowCIDRs={10.96.0.0/16,10.244.0.0/16}"
      --set "tenants.allowedHosts.$namespace={*.shop.test}" --set "tenants.allowedIngressClasses={weir-node}")
  fi
  local definition
  definition=$(definition_owner)
  if [ -n "$definition" ] && [ "$definition" != "$namespace" ]; then
    values+=(--set crds.install=false) # another release's
  fi
  helm upgrade --install weir charts/weir --namespace "$namespace" "${values[@]}" --wait --timeout 4m >/dev/null
  kubectl -n "$namespace" rollout status deployment/weir-operator --timeout=120s >/dev/null
  say "charts/weir installed in the namespace $namespace"
}

# apply_sample applies the sample's Property as it suits the cluster: its webhook points to a receiver there, and an Ingress
# leads to it.
apply_sample() {
  local sample=config/samples/weir_v1alpha1_property.yaml
  if [ "$where" = yours ]; then
    kubectl -n "$namespace" apply -f "$sample" >/dev/null
    kubectl -n "$namespace" patch property shop --type merge -p '{"spec": {"platforms": [{"name": "console", "type": "Log"}]}}' >/dev/null
  else
    sed "s|http://127.0.0.1:9099/hook|http://receiver.$namespace.svc.cluster.local:9099/hook|" "$sample" | kubectl -n "$namespace" apply -f - >/dev/null
    kubectl -n "$namespace" apply -f hack/demo/receiver.yaml >/dev/null
    kubectl -n "$namespace" patch property shop --type merge --patch-file hack/demo/exposure.yaml >/dev/null
  fi
  kubectl -n "$namespace" wait property/shop --for=condition=Ready --timeout=180s >/dev/null
  if [ "$where" != yours ]; then
    kubectl -n "$namespace" wait pod/receiver --for=condition=Ready --timeout=60s >/dev/null
  fi
  say "Property shop is Ready: $(kubectl -n "$namespace" get property shop -o jsonpath='{.status.collectURL}')"
  key=$(secret api-key)
  token=$(secret access-token)
}

# secret prints one of the Property's credentials.
secret() { kubectl -n "$namespace" get secret shop-credentials -o "jsonpath={.data.$1\.default}" | base64 -d; }

# forward SERVICE sets $forwarded to HOST:PORT of this machine, which leads to the Service's port 80.
forward() {
  local log=$scratch/$1.log
  kubectl -n "${2:-$namespace}" port-forward "service/$1" :80 >"$log" 2>&1 &
  forwards+=($!)
  for _ in {1..100}; do
    forwarded=$(sed -n 's/^Forwarding from \(127[^ ]*\) .*/\1/p' "$log")
    [ -z "$forwarded" ] || return 0
    kill -0 "${forwards[-1]}" 2>/dev/null || break
    sleep 0.1
  done
  cat "$log" >&2
  fail "no connection to the Service $1"
}

# find_way sets $collect and $api, where requests go, and the headers that lead them on.
find_way() {
  collect_header=(-H 'Host: collect.shop.test') api_header=(-H 'Host: api.shop.test')
  case $where in
    node) collect=http://10.250.0.2 api=http://10.250.0.2 ;;
    kind)
      forward ingress kube-system
      collect=http://$forwarded api=http://$forwarded
      ;;
    yours) # whether it has an ingress is not for us to find out
      collect_header=() api_header=()
      forward shop-collector
      collect=http://$forwarded
      forward shop-query
      api=http://$forwarded
      ;;
  esac
}

# ask PATH [FLAG…] asks the read API.
ask() {
  curl -sSfg --max-time 10 ${api_header[@]+"${api_header[@]}"} -H "Authorization: Bearer $token" "$api/api/v1/properties/shop/$1" "${@:2}"
}

# collect_events sends one event, and then a batch: a day of a small shop with $visitors visitors. The ids of the events are new each
# time, so a second demo adds to the first.
visitors=150
collect_events() {
  local answer
  answer=$(curl -sS --max-time 10 ${collect_header[@]+"${collect_header[@]}"} -H 'Content-Type: application/json' "$collect/collect/$key" -d '{
    "event": "purchase", "client_id": "jane", "user": {"email": "jane@example.com"},
    "data": {"value": 49.90, "currency": "EUR", "order_id": "demo-'"$EPOCHREALTIME"'"}}')
  say "one purchase sent; the collector answered $answer"
  awk -v visitors="$visitors" -v run="$EPOCHSECONDS" '
    function event(name, data, context) {
      printf "%s{\"event\": \"%s\", \"event_id\": \"demo-%s-%d\", \"client_id\": \"visitor-%s-%d\", \"context\": {%s}, \"data\": {%s}}",
        (count ? ", " : "{\"events\": ["), name, run, ++count, run, v, context, data
    }
    BEGIN {
      split("google|cpc|autumn newsletter|email|november facebook|paid_social|autumn - partner|referral|", sources, " ")
      for (v = 1; v <= visitors; v++) {
        split(sources[v % 5 + 1], utm, "|")
        touch = utm[1] == "-" ? "" : sprintf("\"utm_source\": \"%s\", \"utm_medium\": \"%s\", \"utm_campaign\": \"%s\"", utm[1], utm[2], utm[3])
        event("pageview", "", touch)
        if (v % 3 == 0) event("add_to_cart", sprintf("\"content_id\": \"sku-%d\"", v % 7), "")
        if (v % 6 == 0) event("purchase", sprintf("\"value\": %d.90, \"currency\": \"EUR\", \"order_id\": \"%s-%d\"", 20 + v, run, v), "")
      }
      print "]}"
    }' >"$scratch/events.json"
  answer=$(curl -sS --max-time 10 ${collect_header[@]+"${collect_header[@]}"} -H 'Content-Type: application/json' "$collect/collect/$key/batch" -d @"$scratch/events.json")
  sent=$(grep -o '"event_id"' "$scratch/events.json" | wc -l)
  case $answer in
    *"\"accepted\":$sent,"*) say "$sent events of $visitors visitors sent; all accepted" ;;
    *) fail "of $sent events not all were accepted: ${answer:0:300}" ;;
  esac
}

# figure NAME prints a number of the JSON on the standard input.
figure() { grep -o "\"$1\":[0-9.]*" | head -n 1 | cut -d : -f 2; }

print_numbers() {
  local before=$1 summary deadline=$((SECONDS + 30))
  while :; do # what was accepted is in the numbers a moment later
    summary=$(ask analytics/summary)
    [ "$(figure purchases <<<"$summary")" -lt $((before + visitors / 6 + 1)) ] || break
    [ "$SECONDS" -lt "$deadline" ] || fail "the purchases do not show in the numbers: $summary"
    sleep 0.1
  done
  say "the read API has counted them:"
  for name in pageviews add_to_carts purchases revenue unique_visitors conversion_rate average_order_value; do
    printf '             %-20s %s\n' "$name" "$(figure $name <<<"$summary")"
  done
  say 'how far visitors got (analytics/funnel):'
  ask 'analytics/funnel?steps=pageview&steps=add_to_cart&steps=purchase' | grep -o '"event":"[a-z_]*","events":\["[a-z_]*"\],"visitors":[0-9]*' |
    sed 's/"event":"\([a-z_]*\)",.*,"visitors":\([0-9]*\)/             \1 \2/'
  say 'which channels the purchases are owed to (analytics/attribution):'
  ask analytics/attribution | grep -o '"channel":"[^"]*","conversions":[0-9.]*' |
    sed 's/"channel":"\([^"]*\)","conversions":\([0-9.]*\)/             \1 \2/'
  if [ "$where" != yours ]; then
    say 'the last that the webhook got, hashed and signed:'
    kubectl -n "$namespace" logs pod/receiver --tail 2 | sed 's/^/             /'
  fi
}

try_next() {
  local headers=''
  cat <<EOF_NEXT

Try next (the demo took $SECONDS s; it stays until make demo-down):

  export KUBECONFIG=$KUBECONFIG PATH=$tools:\$PATH
  kubectl -n $namespace get property,pods
  kubectl -n $namespace edit property shop        # and watch it: kubectl -n $namespace get property shop -w
  kubectl -n $namespace logs -f deployment/weir-operator
  KEY=\$(kubectl -n $namespace get secret shop-credentials -o jsonpath='{.data.api-key\\.default}' | base64 -d)
  TOKEN=\$(kubectl -n $namespace get secret shop-credentials -o jsonpath='{.data.access-token\\.default}' | base64 -d)
EOF_NEXT
  case $where in
    node)
      echo "  COLLECT=http://10.250.0.2 API=http://10.250.0.2"
      headers=1
      ;;
    kind)
      echo "  kubectl -n kube-system port-forward service/ingress 8080:80 & COLLECT=http://127.0.0.1:8080 API=http://127.0.0.1:8080"
      headers=1
      ;;
    yours)
      echo "  kubectl -n $namespace port-forward service/shop-collector 8080:80 & COLLECT=http://127.0.0.1:8080"
      echo "  kubectl -n $namespace port-forward service/shop-query 8081:80 & API=http://127.0.0.1:8081"
      ;;
  esac
  cat <<EOF_NEXT
  curl -i${headers:+ -H 'Host: collect.shop.test'} -H 'Content-Type: application/json' \$COLLECT/collect/\$KEY -d '{"event": "pageview", "client_id": "me"}'
  curl${headers:+ -H 'Host: api.shop.test'} -H "Authorization: Bearer \$TOKEN" \$API/api/v1/properties/shop/events?limit=1

The numbers, in a browser on this machine, where you sign in with the token:

  echo "\$TOKEN"; kubectl -n $namespace port-forward service/shop-query 8082:80
  http://127.0.0.1:8082/properties/shop/
EOF_NEXT
}

# explain prints what explains a failure: of the pods and of the operator, and of the node where it is ours.
explain() {
  {
    echo "demo: FAILED after $SECONDS s"
    if [ -n "$reached" ] && kubectl get namespace "$namespace" >/dev/null 2>&1; then
      echo "==> the Property and the pods of $namespace"
      kubectl -n "$namespace" get property,pods -o wide || true
      kubectl -n "$namespace" get property shop -o jsonpath='{range .status.conditions[?(@.status!="True")]}{.type}: {.reason}: {.message}{"\n"}{end}' 2>/dev/null || true
      echo "==> warnings"
      kubectl -n "$namespace" get events --field-selector type=Warning --sort-by .lastTimestamp 2>/dev/null | tail -n 10 || true
      echo "==> the operator's log"
      kubectl -n "$namespace" logs deployment/weir-operator --tail 15 2>/dev/null || true
    fi
    if [ "${where:-}" = node ]; then echo "the node's logs: hack/cluster.sh logs"; fi
    echo "make demo-down puts everything back"
  } >&2
}

up() {
  command -v curl >/dev/null || fail "curl is missing"
  choose_cluster
  scratch=$(mktemp -d) forwards=() reached=''
  trap 'status=$?; [ "$status" -eq 0 ] || explain; for pid in ${forwards[@]+"${forwards[@]}"}; do kill "$pid" 2>/dev/null || true; done; rm -rf "$scratch"; exit "$status"' EXIT
  mkdir -p "$cache"
  if [ "$where" = node ]; then hack/cluster.sh consent; fi
  tools=$(hack/kube.sh kubectl helm)
  PATH=$tools:$PATH
  start_cluster
  reached=1
  if [ "$where" != node ]; then echo "$where" >"$record"; fi
  install_chart
  apply_sample
  find_way
  local before
  before=$(ask analytics/summary --retry 10 --retry-all-errors --retry-delay 1 | figure purchases)
  collect_events
  print_numbers "$before"
  try_next
}

# down_release removes what the demo put into a cluster that stays. The operator ends its Properties first, while it is there. The definition of Property
# goes only where the demo's release made it and no other namespace has one.
down_release() {
  local others owner
  PATH=$(hack/kube.sh kubectl helm):$PATH
  ours "$namespace" || fail "the cluster has no namespace $namespace of the demo's"
  if kubectl get customresourcedefinition properties.weir.dev >/dev/null 2>&1; then
    kubectl -n "$namespace" delete property --all --timeout=180s --ignore-not-found
  fi
  others=$(kubectl get property -A -o name 2>/dev/null | wc -l)
  owner=$(definition_owner)
  helm uninstall weir --namespace "$namespace" --ignore-not-found --wait --timeout 3m >/dev/null
  kubectl delete namespace "$namespace" --ignore-not-found --timeout=180s
  if [ "$owner" = "$namespace" ]; then
    if [ "$others" -eq 0 ]; then
      kubectl delete customresourcedefinition properties.weir.dev --ignore-not-found
    else
      echo "the CustomResourceDefinition of Property stays: other namespaces have Properties"
    fi
  fi
}

down() {
  where=$(cat "$record" 2>/dev/null || echo none)
  case $where in
    yours)
      export KUBECONFIG=${KUBECONFIG_E2E:?names the cluster that the demo is to be removed from}
      down_release
      ;;
    lent)
      KUBECONFIG=$(hack/cluster.sh kubeconfig)
      export KUBECONFIG
      down_release
      ;;
    kind) kind delete cluster --name "$kind_cluster" --kubeconfig "$cache/demo-kubeconfig" ;;
    node) hack/cluster.sh down ;;
    none) echo "there is no demo to put back" ;;
  esac
  rm -f "$record" "$cache/demo-kubeconfig" "$images/weir.tar"
  rm -rf "$images/linux-"*
}

case "${1:-} ${2:-}" in
  'up ') up ;;
  'up --yes')
    export WEIR_INSTALL=1
    up
    ;;
  'down ') down ;;
  *)
    sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' hack/demo.sh >&2
    exit 2
    ;;
esac
