#!/usr/bin/env bash
# Tests Weir end to end in a cluster, as its users have it: hack/e2e holds the steps. make e2e runs it.
#
#   hack/e2e.sh                                       on a node that hack/cluster.sh makes of this machine, and takes away again
#   KUBECONFIG_E2E=FILE IMG=IMAGE hack/e2e.sh         in a cluster of yours
#
# The node needs root on Linux; it says what it will do and asks once, WEIR_INSTALL=1 is the answer yes. None may be up. Beside it run the
# ClickHouse of hack/clickhouse.sh, for a history, and the S3 server of hack/s3, for backups.
#
# In your cluster one namespace is used, weir-e2e, which must not be there before and is removed at the end. The chart makes the
# CustomResourceDefinition of Property where no other release has; it is removed with the namespace unless there are other Properties. Its nodes
# have to be able to pull IMG, and the chart's image of Redis or REDIS_IMG, and to make a volume. Steps that hurt a node, or need an ingress, a webhook's
# receiver, a ClickHouse or two releases, are not run there.
#
#   E2E_RUN=REGEXP    runs the steps whose names match, instead of all; the first two make what the others use, but for the upgrade, which
#                     stands alone: E2E_RUN='release before'
#   E2E_KEEP=1        leaves everything as it is when a step has failed, and says how to run one again
#   BEFORE=REVISION   what is upgraded from: a revision of git, its chart and its image. The last release's tag, or where there is none, what is in
#                     the checkout, as version 0.0.9 and with another text in the definition of Property
set -euo pipefail
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
where=node
if [ -n "${KUBECONFIG_E2E:-}" ]; then
  where=yours
  : "${IMG:?names an image of Weir that the nodes of the cluster of KUBECONFIG_E2E can pull}"
fi
namespace=weir-e2e
started='' # what has to be taken away again

finish() {
  local status=$?
  trap - EXIT
  if [ "$status" -ne 0 ] && [ -n "$started" ] && [ "${E2E_KEEP:-}" = 1 ]; then
    echo "everything is left as it is. To run a step again:"
    echo "  export PATH=$tools:\$PATH; cd hack/e2e"
    echo "  go test -count=1 -v -run 'TestWeir/^keys_are' . -args ${arguments[*]}"
    case $where in
      node) echo "and to end it: hack/cluster.sh down; rm -r $scratch" ;;
      yours) echo "and to end it, delete the Properties in the namespace $namespace, then the namespace" ;;
    esac
    exit "$status"
  fi
  case $started in
    node) hack/cluster.sh down || status=1 ;;
    yours) clean_yours || status=1 ;;
  esac
  [ "$status" -eq 0 ] || repeat_reason
  rm -rf "$scratch"
  exit "$status"
}

# repeat_reason prints once more, as the last thing, what the step that failed said before all that explains it: thousands of lines lie between.
repeat_reason() {
  [ -e "$scratch/output" ] || return 0
  awk '/^=== RUN/ { said = "" } { said = said $0 "\n" } /==> pods and Properties of/ { printf "%s", said; exit }' "$scratch/output" | tail -n 40
}

# clean_yours removes what the suite has made in your cluster. The Properties go first, while their operator is there.
clean_yours() {
  local owner
  if ! kubectl get namespace "$namespace" >/dev/null 2>&1; then return; fi
  if [ "$(kubectl get namespace "$namespace" -o 'jsonpath={.metadata.labels.app\.kubernetes\.io/managed-by}')" != "$namespace" ]; then
    echo "e2e: the namespace $namespace is not this suite's, so it is left alone" >&2
    return 1
  fi
  if kubectl get customresourcedefinition properties.weir.dev >/dev/null 2>&1; then
    kubectl -n "$namespace" delete properties --all --timeout=3m
  fi
  helm uninstall weir --namespace "$namespace" --ignore-not-found --wait --timeout 3m
  kubectl delete namespace "$namespace" --timeout=3m
  owner=$(kubectl get customresourcedefinition properties.weir.dev --ignore-not-found -o 'jsonpath={.metadata.annotations.meta\.helm\.sh/release-namespace}')
  if [ "$owner" = "$namespace" ] && [ -z "$(kubectl get properties --all-namespaces -o name)" ]; then
    kubectl delete customresourcedefinition properties.weir.dev accesstokens.weir.dev apikeys.weir.dev
  fi
}

# pack_before makes the chart that is upgraded from, $scratch/before/charts/weir, and its image.
pack_before() {
  local revision=${BEFORE:-} tree=$scratch/before
  if [ -z "$revision" ]; then
    revision=$(git describe --tags --abbrev=0 --match 'v[0-9]*' HEAD^ 2>/dev/null || true)
  fi
  mkdir -p "$tree/charts"
  if [ -n "$revision" ]; then
    git archive "$revision" | tar -x -C "$tree"
    VERSION=$revision REVISION=$(git rev-parse "$revision") SOURCE_DATE_EPOCH=$(git log -1 --format=%ct "$revision") \
      IMG=$before_image "$tree/hack/image.sh" -o "$scratch/images/before" weir
  else
    cp -R charts/weir "$tree/charts/weir"
    sed -i 's/^version: .*/version: 0.0.9/; s/^appVersion: .*/appVersion: 0.0.9/' "$tree/charts/weir/Chart.yaml"
    sed -i '0,/description: Property is a/s//description: Property was a/' "$tree/charts/weir/files/weir.dev_properties.yaml"
    VERSION=0.0.9 IMG=$before_image hack/image.sh -o "$scratch/images/before" weir
  fi
}

pack_images() {
  image=weir.test/weir:e2e-$EPOCHSECONDS before_image=weir.test/weir:e2e-$EPOCHSECONDS-before
  mkdir -p "$scratch/images"
  pack_before
  IMG=$image hack/image.sh -o "$scratch/images" weir redis
  (cd hack/e2e && ../static.sh e2e "$scratch/bin" ./peer ./provider)
  hack/image.sh pack -o "$scratch/images/peer.tar" -tag weir.test/peer:e2e -file "$scratch/bin/peer:/peer" -file "$scratch/bin/provider:/provider" -entrypoint /peer
}

trap finish EXIT
go test -C hack/e2e -c -o "$scratch/e2e.test" . # what does not compile is better known before the minutes than after
tools=$(hack/kube.sh kubectl helm)
export PATH=$tools:$PATH
case $where in
  yours)
    export KUBECONFIG=$KUBECONFIG_E2E
    if kubectl get namespace "$namespace" >/dev/null 2>&1; then
      echo "e2e: the cluster has a namespace $namespace already; delete it, or name another cluster" >&2
      exit 1
    fi
    arguments=(-cluster "$(realpath "$KUBECONFIG_E2E")" -image "$IMG" -redis-image "'${REDIS_IMG:-}'")
    ;;
  node)
    if hack/cluster.sh status >/dev/null 2>&1; then
      echo "e2e: a node is up already; hack/cluster.sh down, or make demo-down, ends it" >&2
      exit 1
    fi
    hack/cluster.sh consent
    hack/clickhouse.sh >/dev/null # the step of a history would find out after minutes that there is none
    hack/tool.sh hack/s3 github.com/versity/versitygw/cmd/versitygw >/dev/null # and that of backups
    pack_images
    started=node
    hack/cluster.sh up "$scratch"/images/*.tar "$scratch/images/before/weir.tar"
    arguments=(-cluster "$(hack/cluster.sh kubeconfig)" -image "$image" -redis-image weir.test/redis:dev -peer-image weir.test/peer:e2e
      -node "$PWD/hack/cluster.sh" -ingress http://10.250.0.2 -before-chart "$scratch/before/charts/weir" -before-image "$before_image")
    ;;
esac
started=$where
(cd hack/e2e && exec "$scratch/e2e.test" -test.v -test.timeout 30m -test.run "TestWeir${E2E_RUN:+/($E2E_RUN)}" "${arguments[@]//\'/}") |
  tee "$scratch/output"
