package operator

import (
	"flag"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/controllers"
)

// options are the operator's flags.
type options struct {
	controllers.Options
	watchNamespaces   []string
	leaderElection    leaderElection
	redisCertificates redisCertificates
	consoleKeys       types.NamespacedName
	metricsListen     string
	healthListen      string
	logLevelFile      string
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

// addTenantFlags adds the flags that say what Properties may do beyond their namespace.
func (o *options) addTenantFlags(set *flag.FlagSet) {
	set.Func("allow-ingress-annotation", "annotation that Properties may give their Ingress, as `KEY` or PREFIX*; may be repeated; default: none", flags.Repeated(&o.Exposure.AllowedAnnotations))
	set.Func("allow-ingress-class", "IngressClass that Properties may name, as `NAME`, PREFIX* or * for any; may be repeated; "+
		"default: none, so that theirs is the cluster's default", flags.Repeated(&o.Exposure.AllowedIngressClasses))
	set.Func("allow-gateway", "Gateway that Properties of other namespaces may attach to, as `NAMESPACE/NAME`, NAMESPACE/* or *; "+
		"may be repeated; default: none", flags.Repeated(&o.Exposure.AllowedGateways))
	set.Func("allow-pod-annotation", "annotation that Properties may give their pods, as `KEY` or PREFIX*; may be repeated; "+
		"default: none", flags.Repeated(&o.Pods.AllowedAnnotations))
	set.Func("allow-toleration", "taint that Properties' pods may tolerate, as `KEY`, PREFIX* or * for any; may be repeated; "+
		"default: none", flags.Repeated(&o.Pods.AllowedTolerations))
	set.StringVar(&o.Exposure.HostTemplate, "host-template", "", "collectHost of exposed Properties that name none: a `HOST` with {name} and {namespace} in it, and a dot between them; default: they have to name one")
}

// addRedisFlags adds the flags of the operator's own Redis, and of those that it makes.
func (o *options) addRedisFlags(set *flag.FlagSet, urlFile *string) {
	set.StringVar(urlFile, "redis-url-file", "", "`FILE` with the URL of the Redis for Properties that bring none; its user may use acl, function and info")
	set.StringVar(&o.RedisImage, "redis-image", "", "`IMAGE` of Redis 7.0 or newer, or Valkey, that runs where a Property asks for a Redis of its own by spec.redis.dedicated; "+
		"default: none is made")
	flags.AddRedisTLS(set, &o.RedisTLS)
	o.redisCertificates.addFlags(set)
}

// readRedis reads the files that they name.
func (o *options) readRedis(urlFile string, errs *flags.Errors) {
	o.RedisURL = readRedisURL(urlFile, errs)
	flags.ReadRedisTLS("--redis-url-file", o.RedisURL, o.RedisTLS, errs)
	o.redisCertificates.check(o.RedisURL, o.RedisTLS, errs)
}

// readRedisURL reads the URL of the operator's Redis from a file, "" where there is none.
func readRedisURL(file string, errs *flags.Errors) string {
	if file == "" {
		return ""
	}
	content, err := os.ReadFile(file)
	if err != nil {
		errs.Add("--redis-url-file: %v", err)
		return ""
	}
	address := strings.TrimSpace(string(content))
	if !strings.Contains(address, "://") {
		errs.Add("--redis-url-file: %s must hold a URL such as redis://user:password@host:6379/0", file)
	}
	return address
}

// parseFlags reads the flags. It returns [flag.ErrHelp] where help was asked for, else [flags.Errors] with
// everything that is wrong.
func parseFlags(args []string, output io.Writer) (options, error) {
	var o options
	var redisURLFile, whenAbsent string
	var clickHouse clickHouseFlags
	var pods tenantPods
	var cidrs, redisCIDRs, proxies, endpoints, namespaces, hosts []string
	var network networkFlags

	set := flags.NewSet(program)
	set.StringVar(&o.Image, "image", os.Getenv("WEIR_IMAGE"), "`IMAGE` that the Properties' pods run; default: the environment's WEIR_IMAGE")
	o.addRedisFlags(set, &redisURLFile)
	clickHouse.addFlags(set, &o)
	set.Func("watch-namespace", "`NAMESPACE` whose Properties are served; may be repeated; default: all", flags.Repeated(&namespaces))
	addOperatorClass(set, &o.OperatorClass)
	o.leaderElection.addFlags(set)
	set.DurationVar(&o.SyncPeriod, "sync-period", 10*time.Hour, "longest time until a Property is looked at again without being told of a change; each has one of its own, from half of it on")
	set.StringVar(&o.metricsListen, "metrics-listen", ":8080", "`ADDRESS` for /metrics; 0 for none")
	set.StringVar(&o.healthListen, "health-listen", ":8081", "`ADDRESS` for /healthz and /readyz")
	set.StringVar(&o.logLevelFile, logLevelFlag, "", "`FILE` with what is logged, debug, info, warn or error, which is looked at again and again; default: info")
	set.Func("egress-allow-cidr", "private range that deliveries may reach, as `CIDR`; may be repeated", flags.Repeated(&cidrs))
	set.Func("redis-allow-cidr", "private range in which the operator connects to the Redis that a Property brings, as `CIDR`; may be repeated; "+
		"default: none, only public addresses", flags.Repeated(&redisCIDRs))
	flags.AddTrustedProxies(set, &proxies)
	flags.AddConsentWhenAbsent(set, &whenAbsent)
	set.Func("platform-endpoint", "other base URL for a platform type, as `TYPE=URL`; may be repeated", flags.Repeated(&endpoints))
	set.Func("allow-host", "host that Properties may have, as `NAMESPACE=HOST`, where * stands for all namespaces, *.DOMAIN for all its hosts, "+
		"{namespace} for the Property's and * for any; may be repeated; default: what --host-template gives them", flags.Repeated(&hosts))
	o.addTenantFlags(set)
	pods.addFlags(set)
	set.Func("console-keys-secret", "keep the keys with which the console signs what it asks, in the Secret `NAMESPACE/NAME`, which has to be there, "+
		"and have Properties' read API trust them; default: there is no console", namespacedName(&o.consoleKeys, "weir-system/weir-console-keys"))
	network.addFlags(set)
	if err := flags.Parse(set, usage, args, output); err != nil {
		return o, err
	}

	var errs flags.Errors
	checkOperatorClass(o.OperatorClass, &errs)
	o.leaderElection.check(&errs)
	if o.OperatorClass != "" && o.leaderElection.name == electionName { // that of one without a class, which may run beside it
		o.leaderElection.name = o.OperatorClass + "." + electionName
	}
	if o.SyncPeriod < time.Second {
		errs.Add("--sync-period: %s must be at least 1s", o.SyncPeriod)
	}
	if o.metricsListen != "0" {
		flags.CheckAddress("--metrics-listen", o.metricsListen, ":8081 or 127.0.0.1:8081", &errs)
	}
	flags.CheckAddress("--health-listen", o.healthListen, ":8081 or 127.0.0.1:8081", &errs)
	checkLogLevel(o.logLevelFile, &errs)
	if o.Image == "" {
		errs.Add("--image: must name the image that the Properties' pods run")
	}
	o.EgressAllowCIDRs = flags.ParseRanges("--egress-allow-cidr", cidrs, &errs)
	o.RedisAllowCIDRs = flags.ParseRanges("--redis-allow-cidr", redisCIDRs, &errs)
	o.TrustedProxyCIDRs = flags.ParseTrustedProxies(proxies, &errs)
	o.WithholdUnsaid = flags.ParseConsentWhenAbsent(whenAbsent, &errs)
	o.PlatformEndpoints = flags.ParseEndpoints(endpoints, &errs)
	o.Exposure.AllowedHosts = parseHosts(hosts, &errs)
	if template := o.Exposure.HostTemplate; template != "" && !hostTemplate.MatchString(template) {
		errs.Add("--host-template: %q must be a host in lower case with {name} and {namespace} in it, once each and with a dot between them, "+
			"as in {name}.{namespace}.collect.example.com", template)
	}
	o.Network = network.read(&errs)
	for _, namespace := range namespaces {
		if strings.HasPrefix(namespace, "kube-") {
			errs.Add("--watch-namespace: %s is the cluster's own, and no Properties are served there", namespace)
		}
	}
	checkGateways(o.Exposure.AllowedGateways, &errs)
	o.watchNamespaces = slices.Compact(slices.Sorted(slices.Values(namespaces)))
	o.readRedis(redisURLFile, &errs)
	clickHouse.read(&o, &errs)
	pods.read(&o, &errs)
	return o, errs.Err()
}

// hostTemplate is a host's name in which {name} and {namespace} stand once each. The dot between them, which neither can
// hold, keeps the hosts of a-b in c and of a in b-c apart.
var hostTemplate = regexp.MustCompile(`^[a-z0-9.-]*(\{name\}[a-z0-9-]*\.[a-z0-9.-]*\{namespace\}|\{namespace\}[a-z0-9-]*\.[a-z0-9.-]*\{name\})[a-z0-9.-]*\.[a-z0-9-]*[a-z0-9]$`)

// hostPattern is a host, *.DOMAIN or *, in which {namespace} may stand.
var hostPattern = regexp.MustCompile(`^(\*|(\*\.)?([a-z0-9.-]|\{namespace\})+)$`)

// parseHosts reads the values of --allow-host.
func parseHosts(list []string, errs *flags.Errors) map[string][]string {
	hosts := map[string][]string{}
	for _, text := range list {
		namespace, host, found := strings.Cut(text, "=")
		if !found || namespace == "" || !hostPattern.MatchString(host) {
			errs.Add("--allow-host: %q must be NAMESPACE=HOST, as in shops=*.shop.example.com", text)
			continue
		}
		hosts[namespace] = append(hosts[namespace], host)
	}
	return hosts
}

func checkGateways(list []string, errs *flags.Errors) {
	for _, text := range list {
		if namespace, name, found := strings.Cut(text, "/"); text != "*" && (!found || namespace == "" || name == "") {
			errs.Add("--allow-gateway: %q must be NAMESPACE/NAME, as in edge/public, NAMESPACE/* or *", text)
		}
	}
}

// electionName is the Lease's by which operators agree, where no flag names another; an operator of a class puts the class ahead.
const electionName = "weir-operator.weir.dev"

func addOperatorClass(set *flag.FlagSet, class *string) {
	set.StringVar(class, "operator-class", "", "`CLASS` of Properties that are served, by their spec.operatorClass; default: those without one")
}

// operatorClass is what the definition lets spec.operatorClass be.
var operatorClass = regexp.MustCompile(`^([a-z]([-a-z0-9]{0,38}[a-z0-9])?)?$`)

func checkOperatorClass(class string, errs *flags.Errors) {
	if !operatorClass.MatchString(class) {
		errs.Add("--operator-class: %q must be at most 40 lower-case letters, digits and '-', with a letter first and no '-' at the end, as in blue", class)
	}
}

func (l *leaderElection) addFlags(set *flag.FlagSet) {
	set.BoolVar(&l.enabled, "leader-elect", false, "let one of several operators work at a time")
	set.StringVar(&l.namespace, "leader-elect-resource-namespace", "", "`NAMESPACE` of the Lease by which they agree; default: the pod's")
	set.StringVar(&l.name, "leader-elect-resource-name", electionName, "`NAME` of that Lease; another for each release of a namespace")
	set.DurationVar(&l.duration, "leader-elect-lease-duration", 15*time.Second, "how long the others wait for a leader that renews no longer")
	set.DurationVar(&l.renewDeadline, "leader-elect-renew-deadline", 10*time.Second, "how long a leader tries to renew before it gives up; shorter than the lease")
	set.DurationVar(&l.retryPeriod, "leader-elect-retry-period", 2*time.Second, "how often the leader renews, and the others look")
}

func (l *leaderElection) check(errs *flags.Errors) {
	if l.retryPeriod <= 0 {
		errs.Add("--leader-elect-retry-period: %s must be more than 0", l.retryPeriod)
	}
	if float64(l.renewDeadline) <= leaderelection.JitterFactor*float64(l.retryPeriod) {
		errs.Add("--leader-elect-renew-deadline: %s must be more than %v times --leader-elect-retry-period, %s", l.renewDeadline, leaderelection.JitterFactor, l.retryPeriod)
	}
	if l.duration <= l.renewDeadline {
		errs.Add("--leader-elect-lease-duration: %s must be more than --leader-elect-renew-deadline, %s", l.duration, l.renewDeadline)
	}
}
