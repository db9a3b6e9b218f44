package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/client-go/tools/leaderelection"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/controllers"
	"github.com/weir-dev/weir/controllers/resources"
)

// operatorOptions are the operator's flags.
type operatorOptions struct {
	controllers.Options
	watchNamespaces   []string
	leaderElection    leaderElection
	redisCertificates redisCertificates
	syncPeriod        time.Duration
	metricsListen     string
	healthListen      string
}

// leaderElection says how operators agree on the one that works, by a Lease of coordination.k8s.io.
type leaderElection struct {
	enabled bool
	// namespace is the Lease's, "" for that of the pod; name is the Lease's own.
	namespace, name string
	// duration is how long the others wait for a leader that renews no longer, renewDeadline how long the leader
	// tries before it gives up, retryPeriod how often either does.
	duration, renewDeadline, retryPeriod time.Duration
}

// repeated returns what a flag that may be repeated is read with.
func repeated(into *[]string) func(string) error {
	return func(value string) error { *into = append(*into, value); return nil }
}

// addTenantFlags adds the flags that say what Properties may do beyond their namespace.
func (o *operatorOptions) addTenantFlags(flags *flag.FlagSet) {
	flags.Func("allow-ingress-annotation", "annotation that Properties may give their Ingress, as `KEY` or PREFIX*; may be repeated; default: none", repeated(&o.Exposure.AllowedAnnotations))
	flags.Func("allow-ingress-class", "IngressClass that Properties may name, as `NAME`, PREFIX* or * for any; may be repeated; "+
		"default: none, so that theirs is the cluster's default", repeated(&o.Exposure.AllowedIngressClasses))
	flags.Func("allow-gateway", "Gateway that Properties of other namespaces may attach to, as `NAMESPACE/NAME`, NAMESPACE/* or *; "+
		"may be repeated; default: none", repeated(&o.Exposure.AllowedGateways))
	flags.Func("allow-pod-annotation", "annotation that Properties may give their pods, as `KEY` or PREFIX*; may be repeated; "+
		"default: none", repeated(&o.Pods.AllowedAnnotations))
	flags.Func("allow-toleration", "taint that Properties' pods may tolerate, as `KEY`, PREFIX* or * for any; may be repeated; "+
		"default: none", repeated(&o.Pods.AllowedTolerations))
	flags.StringVar(&o.Exposure.HostTemplate, "host-template", "", "collectHost of exposed Properties that name none: a `HOST` with {name} and {namespace} in it, and a dot between them; default: they have to name one")
}

// addRedisFlags adds the flags of the operator's own Redis.
func (o *operatorOptions) addRedisFlags(flags *flag.FlagSet, urlFile *string) {
	flags.StringVar(urlFile, "redis-url-file", "", "`FILE` with the URL of the Redis for Properties that bring none; its user may use acl, function and info")
	addTLSFlags(flags, &o.RedisTLS)
	o.redisCertificates.addFlags(flags)
}

// readRedis reads the files that they name.
func (o *operatorOptions) readRedis(urlFile string, fault func(string, ...any)) {
	o.RedisURL = readRedisURL(urlFile, fault)
	readTLS("--redis-url-file", o.RedisURL, o.RedisTLS, fault)
	o.redisCertificates.check(o.RedisURL, o.RedisTLS, fault)
}

// readRedisURL reads the URL of the operator's Redis from a file, "" where there is none.
func readRedisURL(file string, fault func(string, ...any)) string {
	if file == "" {
		return ""
	}
	content, err := os.ReadFile(file)
	if err != nil {
		fault("--redis-url-file: %v", err)
		return ""
	}
	address := strings.TrimSpace(string(content))
	if !strings.Contains(address, "://") {
		fault("--redis-url-file: %s must hold a URL such as redis://user:password@host:6379/0", file)
	}
	return address
}

// parseOperatorFlags reads the flags. It returns [flag.ErrHelp] where help was asked for, else a faultList with
// everything that is wrong.
func parseOperatorFlags(args []string, output io.Writer) (operatorOptions, error) {
	var o operatorOptions
	var redisURLFile string
	var cidrs, redisCIDRs, endpoints, namespaces, hosts, ingressFrom, metricsFrom, dnsTo []string
	networkPolicies := true

	flags := flag.NewFlagSet("weir operator", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.Image, "image", os.Getenv("WEIR_IMAGE"), "`IMAGE` that the Properties' pods run; default: the environment's WEIR_IMAGE")
	o.addRedisFlags(flags, &redisURLFile)
	flags.Func("watch-namespace", "`NAMESPACE` whose Properties are served; may be repeated; default: all", repeated(&namespaces))
	o.leaderElection.addFlags(flags)
	flags.DurationVar(&o.syncPeriod, "sync-period", 10*time.Hour, "how often every Property is looked at without being told of a change")
	flags.StringVar(&o.metricsListen, "metrics-listen", ":8080", "`ADDRESS` for /metrics; 0 for none")
	flags.StringVar(&o.healthListen, "health-listen", ":8081", "`ADDRESS` for /healthz and /readyz")
	flags.Func("egress-allow-cidr", "private range that deliveries may reach, as `CIDR`; may be repeated", repeated(&cidrs))
	flags.Func("redis-allow-cidr", "private range in which the operator connects to the Redis that a Property brings, as `CIDR`; may be repeated; "+
		"default: none, only public addresses", repeated(&redisCIDRs))
	flags.Func("platform-endpoint", "other base URL for a platform type, as `TYPE=URL`; may be repeated", repeated(&endpoints))
	flags.Func("allow-host", "host that Properties may have, as `NAMESPACE=HOST`, where * stands for all namespaces, *.DOMAIN for all its hosts, "+
		"{namespace} for the Property's and * for any; may be repeated; default: what --host-template gives them", repeated(&hosts))
	o.addTenantFlags(flags)
	flags.BoolVar(&networkPolicies, "network-policies", true, "make a NetworkPolicy for each role of a Property")
	flags.Func("ingress-from", "who may ask collectors and the read API, as a NetworkPolicy's `PEER` in JSON; may be repeated; default: anybody", repeated(&ingressFrom))
	flags.Func("metrics-from", "who may ask a Property's pods for metrics, as a `PEER` in JSON; may be repeated; default: anybody", repeated(&metricsFrom))
	flags.Func("dns-to", "where a Property's pods may resolve names, as a `PEER` in JSON; may be repeated; default: anywhere", repeated(&dnsTo))
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(output, "Usage: weir operator [flags]\n\n")
		flags.SetOutput(output)
		flags.PrintDefaults()
		return o, err
	} else if err != nil {
		return o, faultList{err.Error() + `; "weir operator -h" lists the flags`}
	}

	var faults faultList
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if flags.NArg() > 0 {
		fault("%q is no flag", flags.Arg(0))
	}
	o.leaderElection.check(fault)
	if o.syncPeriod < time.Second {
		fault("--sync-period: %s must be at least 1s", o.syncPeriod)
	}
	if o.metricsListen != "0" {
		checkAddress("--metrics-listen", o.metricsListen, fault)
	}
	checkAddress("--health-listen", o.healthListen, fault)
	if o.Image == "" {
		fault("--image: must name the image that the Properties' pods run")
	}
	o.EgressAllowCIDRs = parseRanges("--egress-allow-cidr", cidrs, fault)
	o.RedisAllowCIDRs = parseRanges("--redis-allow-cidr", redisCIDRs, fault)
	o.PlatformEndpoints = parseEndpoints(endpoints, fault)
	o.Exposure.AllowedHosts = parseHosts(hosts, fault)
	if template := o.Exposure.HostTemplate; template != "" && !hostTemplate.MatchString(template) {
		fault("--host-template: %q must be a host in lower case with {name} and {namespace} in it, once each and with a dot between them, "+
			"as in {name}.{namespace}.collect.example.com", template)
	}
	o.Network = resources.NetworkRules{
		Disabled:    !networkPolicies,
		IngressFrom: parsePeers("--ingress-from", ingressFrom, fault),
		MetricsFrom: parsePeers("--metrics-from", metricsFrom, fault),
		DNSTo:       parsePeers("--dns-to", dnsTo, fault),
	}
	for _, namespace := range namespaces {
		if strings.HasPrefix(namespace, "kube-") {
			fault("--watch-namespace: %s is the cluster's own, and no Properties are served there", namespace)
		}
	}
	checkGateways(o.Exposure.AllowedGateways, fault)
	o.watchNamespaces = slices.Compact(slices.Sorted(slices.Values(namespaces)))
	o.readRedis(redisURLFile, fault)
	if faults != nil {
		return o, faults
	}
	return o, nil
}

func checkAddress(name, address string, fault func(format string, args ...any)) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		fault("%s: %q must be HOST:PORT, as in :8081 or 127.0.0.1:8081", name, address)
	}
}

// hostTemplate is a host's name in which {name} and {namespace} stand once each. The dot between them, which neither can
// hold, keeps the hosts of a-b in c and of a in b-c apart.
var hostTemplate = regexp.MustCompile(`^[a-z0-9.-]*(\{name\}[a-z0-9-]*\.[a-z0-9.-]*\{namespace\}|\{namespace\}[a-z0-9-]*\.[a-z0-9.-]*\{name\})[a-z0-9.-]*\.[a-z0-9-]*[a-z0-9]$`)

// hostPattern is a host, *.DOMAIN or *, in which {namespace} may stand.
var hostPattern = regexp.MustCompile(`^(\*|(\*\.)?([a-z0-9.-]|\{namespace\})+)$`)

// parseHosts reads the values of --allow-host.
func parseHosts(list []string, fault func(format string, args ...any)) map[string][]string {
	hosts := map[string][]string{}
	for _, text := range list {
		namespace, host, found := strings.Cut(text, "=")
		if !found || namespace == "" || !hostPattern.MatchString(host) {
			fault("--allow-host: %q must be NAMESPACE=HOST, as in shops=*.shop.example.com", text)
			continue
		}
		hosts[namespace] = append(hosts[namespace], host)
	}
	return hosts
}

func checkGateways(list []string, fault func(format string, args ...any)) {
	for _, text := range list {
		if namespace, name, found := strings.Cut(text, "/"); text != "*" && (!found || namespace == "" || name == "") {
			fault("--allow-gateway: %q must be NAMESPACE/NAME, as in edge/public, NAMESPACE/* or *", text)
		}
	}
}

func (l *leaderElection) addFlags(flags *flag.FlagSet) {
	flags.BoolVar(&l.enabled, "leader-elect", false, "let one of several operators work at a time")
	flags.StringVar(&l.namespace, "leader-elect-resource-namespace", "", "`NAMESPACE` of the Lease by which they agree; default: the pod's")
	flags.StringVar(&l.name, "leader-elect-resource-name", "weir-operator.weir.dev", "`NAME` of that Lease; another for each release of a namespace")
	flags.DurationVar(&l.duration, "leader-elect-lease-duration", 15*time.Second, "how long the others wait for a leader that renews no longer")
	flags.DurationVar(&l.renewDeadline, "leader-elect-renew-deadline", 10*time.Second, "how long a leader tries to renew before it gives up; shorter than the lease")
	flags.DurationVar(&l.retryPeriod, "leader-elect-retry-period", 2*time.Second, "how often the leader renews, and the others look")
}

func (l *leaderElection) check(fault func(format string, args ...any)) {
	if l.retryPeriod <= 0 {
		fault("--leader-elect-retry-period: %s must be more than 0", l.retryPeriod)
	}
	if float64(l.renewDeadline) <= leaderelection.JitterFactor*float64(l.retryPeriod) {
		fault("--leader-elect-renew-deadline: %s must be more than %v times --leader-elect-retry-period, %s", l.renewDeadline, leaderelection.JitterFactor, l.retryPeriod)
	}
	if l.duration <= l.renewDeadline {
		fault("--leader-elect-lease-duration: %s must be more than --leader-elect-renew-deadline, %s", l.duration, l.renewDeadline)
	}
}

// parsePeers reads the values of a flag that names peers of NetworkPolicies. What else is wrong with one the API
// server says, and with it the Property's condition.
func parsePeers(name string, list []string, fault func(format string, args ...any)) []networkingv1.NetworkPolicyPeer {
	peers := make([]networkingv1.NetworkPolicyPeer, 0, len(list))
	for _, text := range list {
		var peer networkingv1.NetworkPolicyPeer
		if err := yaml.UnmarshalStrict([]byte(text), &peer); err != nil || peer == (networkingv1.NetworkPolicyPeer{}) {
			fault("%s: %q must be a peer of a NetworkPolicy in JSON, as in {\"namespaceSelector\": {\"matchLabels\": {\"kubernetes.io/metadata.name\": \"ingress-nginx\"}}}", name, text)
			continue
		}
		peers = append(peers, peer)
	}
	return peers
}
