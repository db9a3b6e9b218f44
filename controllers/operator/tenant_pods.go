package operator

import (
	"errors"
	"flag"
	"os"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/egress"
	"github.com/weir-dev/weir/controllers/resources"
)

// tenantPods are the flags of what the pods of all Properties have.
type tenantPods struct {
	anyUser      bool
	defaultsFile string
	proxy        proxyFlags
	tracing      tracingFlags
}

// tracingFlags say where the pods send spans.
type tracingFlags struct {
	endpoint string
	ratio    float64
	to       []string
}

// proxyFlags are those of the proxy that deliveries go through.
type proxyFlags struct{ urlFile, caFile, connectTo string }

func (p *tenantPods) addFlags(set *flag.FlagSet) {
	set.BoolVar(&p.anyUser, "any-user", false, "leave the user and groups of Properties' pods to the cluster, as OpenShift wants it; otherwise they are 65532")
	set.StringVar(&p.defaultsFile, podDefaultsFlag, "", "`FILE` with what the pods of all Properties have, in YAML or JSON: imagePullSecrets, labels, annotations, priorityClassName, "+
		"env, tolerations, nodeSelector and topologySpreadConstraints; a Property's own goes before it")
	p.proxy.addFlags(set)
	p.tracing.addFlags(set)
}

// The flags of [tracingFlags].
const (
	tracingFlag      = "tracing-endpoint"
	tracingRatioFlag = "tracing-sample-ratio"
	tracingToFlag    = "tracing-to"
)

func (t *tracingFlags) addFlags(set *flag.FlagSet) {
	set.StringVar(&t.endpoint, tracingFlag, "", "base `URL` of a receiver of OTLP over HTTP that Properties' pods send spans to, as in "+
		"http://otel-collector.observability.svc:4318; default: they send none")
	set.Float64Var(&t.ratio, tracingRatioFlag, 1, "`SHARE` of requests and deliveries that have a span, from 0 to 1")
	set.Func(tracingToFlag, "who that receiver is, as a NetworkPolicy's `PEER` in JSON; may be repeated; default: anybody at its port", flags.Repeated(&t.to))
}

func (t *tracingFlags) read(errs *flags.Errors) resources.Tracing {
	if t.endpoint == "" {
		if t.ratio != 1 || len(t.to) > 0 {
			errs.Add("--%s and --%s: go with --%s alone", tracingRatioFlag, tracingToFlag, tracingFlag)
		}
		return resources.Tracing{}
	}
	tracing := resources.Tracing{Endpoint: t.endpoint, SampleRatio: t.ratio, To: parsePeers("--"+tracingToFlag, t.to, errs)}
	if err := tracing.Check(); err != nil {
		errs.Add("--%s: %v", tracingFlag, err)
	}
	if !(t.ratio >= 0 && t.ratio <= 1) {
		errs.Add("--%s: %v must be from 0 to 1", tracingRatioFlag, t.ratio)
	}
	return tracing
}

const podDefaultsFlag = "pod-defaults-file"

// The flags of [proxyFlags], and the words of the last.
const (
	proxyFlag        = "delivery-proxy-url-file"
	proxyCAFlag      = "delivery-proxy-ca-file"
	proxyConnectFlag = "delivery-proxy-connect-to"

	byAddress, byName = "Address", "Name"
)

func (p *proxyFlags) addFlags(set *flag.FlagSet) {
	set.StringVar(&p.urlFile, proxyFlag, "", "`FILE` with the URL of an HTTP proxy that deliveries go through by CONNECT, as in http://user:password@proxy:3128; "+
		"default: they go directly")
	set.StringVar(&p.caFile, proxyCAFlag, "", "`FILE` with the authorities that an https:// proxy's certificate may come from, in PEM; default: the system's")
	set.StringVar(&p.connectTo, proxyConnectFlag, byAddress, "`WORD` for what the proxy is asked to connect to: the Address that has been found to be public, "+
		"or the host's Name, for a proxy that decides by names and itself keeps them from leading inside")
}

// read reads the files that they name. An error repeats nothing of the URL.
func (p *proxyFlags) read(errs *flags.Errors) config.DeliveryProxy {
	if p.connectTo != byAddress && p.connectTo != byName {
		errs.Add("--%s: %q must be %s or %s", proxyConnectFlag, p.connectTo, byAddress, byName)
	}
	if p.urlFile == "" {
		if p.caFile != "" || p.connectTo != byAddress {
			errs.Add("--%s and --%s: go with --%s alone", proxyCAFlag, proxyConnectFlag, proxyFlag)
		}
		return config.DeliveryProxy{}
	}
	proxy := config.DeliveryProxy{ByName: p.connectTo == byName}
	for _, file := range []struct {
		flag, path string
		into       *string
	}{{proxyFlag, p.urlFile, &proxy.URL}, {proxyCAFlag, p.caFile, &proxy.CA}} {
		if file.path == "" {
			continue
		}
		content, err := os.ReadFile(file.path)
		if err != nil {
			errs.Add("--%s: %v", file.flag, err)
			return config.DeliveryProxy{}
		}
		*file.into = string(content)
	}
	proxy.URL = strings.TrimSpace(proxy.URL)
	_, err := egress.ParseProxy(proxy.URL, proxy.CA)
	switch {
	case errors.Is(err, egress.ErrProxyCA):
		errs.Add("--%s: %v", proxyCAFlag, err)
	case err != nil:
		errs.Add("--%s: %v", proxyFlag, err)
	}
	return proxy
}

// read reads the files that they name.
func (p *tenantPods) read(o *options, errs *flags.Errors) {
	o.AnyUser = p.anyUser
	if p.defaultsFile != "" {
		o.PodDefaults = readPodDefaults(p.defaultsFile, errs)
	}
	o.DeliveryProxy = p.proxy.read(errs)
	o.Tracing = p.tracing.read(errs)
}

// readPodDefaults reads the file of --pod-defaults-file.
func readPodDefaults(file string, errs *flags.Errors) resources.PodDefaults {
	var defaults resources.PodDefaults
	content, err := os.ReadFile(file)
	if err != nil {
		errs.Add("--%s: %v", podDefaultsFlag, err)
		return defaults
	}
	if err := yaml.UnmarshalStrict(content, &defaults); err != nil {
		errs.Add("--%s: %s: %v", podDefaultsFlag, file, plain(err))
		return defaults
	}
	for _, wrong := range defaults.Check() {
		errs.Add("--%s: %s", podDefaultsFlag, wrong)
	}
	return defaults
}

// decoderWords are those of the decoder that say nothing of the file.
var decoderWords = regexp.MustCompile(`^(error unmarshaling JSON: while decoding JSON: |error converting YAML to JSON: )`)

// plain words what is wrong with a document in one line.
func plain(err error) error {
	return errors.New(strings.Join(strings.Fields(decoderWords.ReplaceAllString(err.Error(), "")), " "))
}
