#!/usr/bin/env bash
# A Kubernetes node of this machine, without a container engine, for demonstrations and end-to-end tests.
#
#   hack/cluster.sh up [ARCHIVE…]             bring it up and import image archives; where it is up, only import them
#   hack/cluster.sh load ARCHIVE…             import image archives
#   hack/cluster.sh kubeconfig                print the path of the administrator's kubeconfig
#   hack/cluster.sh status                    list etcd, kube-apiserver, …, the kubelet: do they run, did they crash
#   hack/cluster.sh logs [-n LINES] [NAME…]   the ends of their logs
#   hack/cluster.sh start|stop|restart NAME…  some of them, for instance the kubelet
#   hack/cluster.sh kill NAME…                as a crash would: they are started again
#   hack/cluster.sh exec COMMAND…             run something inside the node: nft list ruleset, ctr -n k8s.io containers list, …
#   hack/cluster.sh images                    list the images that it has
#   hack/cluster.sh agent                     pack the image of its agents and print the path, for a cluster of another kind
#   hack/cluster.sh ingress-manifest          print what runs its ingress, for such a cluster
#   hack/cluster.sh consent                   say what `up` will do, and ask, without doing it
#   hack/cluster.sh down                      put everything back as it was; fine to repeat
#
# hack/cluster/README.md says what the node is made of. It needs root on Linux, Go, and bash, iproute2, util-linux and tar;
# with Debian or Ubuntu it fetches the rest, elsewhere it names what is missing. As it takes minutes and hundreds of
# megabytes the first time, `up` asks once; WEIR_INSTALL=1 is the answer yes. WEIR_CACHE moves the cache directory.
set -euo pipefail
here=$PWD
cd "$(dirname "$0")/.."

command=${1:-}
if [ -z "$command" ]; then
  sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' hack/cluster.sh >&2
  exit 2
fi
shift
. hack/cache.sh
images=$cache/node-images

# consent says what will be done and asks, once for this cache directory.
consent() {
  if [ "${WEIR_INSTALL:-}" = 1 ] || [ -e "$cache/node-consent" ]; then return; fi
  cat >&2 <<EOF_CONSENT
This makes a Kubernetes node of this machine, as root:
  - Kubernetes, etcd and CoreDNS are built from Go modules: about 10 minutes and 4 GB below Go's caches the first time
  - containerd, runc, CNI plugins and nftables are fetched from the distribution and unpacked, not installed
  - the node runs in namespaces of its own; the machine gets one network link, weir-node, with routes to
    10.244.0.0/24 and 10.96.0.0/16, and one cgroup, weir-node; about 1 GB of memory while it is up
  - everything lies in $cache: about 1.5 GB
"hack/cluster.sh down" ends it and removes the link, the cgroup and its state.
EOF_CONSENT
  if ! [ -t 0 ]; then
    echo "cluster: nobody can be asked here; WEIR_INSTALL=1 says yes" >&2
    exit 1
  fi
  read -r -p 'Go on? [y/N] ' answer
  case $answer in
    y | Y | yes) mkdir -p "$cache" && touch "$cache/node-consent" ;;
    *) exit 1 ;;
  esac
}

# pack NAME REFERENCE PROGRAM packs an image of one program, unless the last one was of the very same.
pack() {
  local sum
  sum=$(sha256sum <"$3")
  if [ -e "$images/$1.tar" ] && [ "$(cat "$images/$1.sum" 2>/dev/null)" = "$sum" ]; then return; fi
  hack/image.sh pack -o "$images/$1.tar" -tag "$2" -file "$3:/${3##*/}" -entrypoint "/${3##*/}" >/dev/null
  echo "$sum" >"$images/$1.sum"
}

# prepare builds what `up` needs.
prepare() {
  programs=$(hack/kube.sh etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy coredns)
  mkdir -p "$images"
  pack coredns weir.test/coredns:dev "$programs/coredns"
  pack node-agent weir.test/node-agent:dev "$binary"
  [ -e "$images/pause.tar" ] || hack/image.sh -o "$images" pause >/dev/null
}

archives=()
case $command in
  up | load)
    for archive in "$@"; do
      case $archive in
        /*) archives+=("$archive") ;;
        *) archives+=("$here/$archive") ;;
      esac
    done
    set -- ${archives[@]+"${archives[@]}"}
    ;;
esac

if [ "$command" = up ] || [ "$command" = consent ]; then
  if [ "$(id -u)" -ne 0 ]; then
    echo "cluster: a node needs root; with a cluster of your own, none of this is needed" >&2
    exit 1
  fi
  consent
  if [ "$command" = consent ]; then exit; fi
fi
binary=$cache/node-bin/cluster
if [ "$command" = up ] || [ "$command" = agent ] || [ ! -x "$binary" ]; then
  (cd hack/cluster && ../static.sh dev "${binary%/*}" github.com/weir-dev/weir/hack/cluster)
fi
case $command in
  up)
    prepare
    exec "$binary" up -cache "$cache" -programs "$programs" "$@"
    ;;
  agent)
    mkdir -p "$images"
    pack node-agent weir.test/node-agent:dev "$binary"
    echo "$images/node-agent.tar"
    ;;
  *) exec "$binary" "$command" -cache "$cache" -- "$@" ;;
esac
