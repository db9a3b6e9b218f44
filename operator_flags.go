package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/weir-dev/weir/controllers"
)

// operatorOptions are the operator's flags.
type operatorOptions struct {
	controllers.Options
	watchNamespaces []string
	leaderElection  bool
	metricsListen   string
	healthListen    string
}

// parseOperatorFlags reads the flags. It returns [flag.ErrHelp] where help was asked for, else a faultList with
// everything that is wrong.
func parseOperatorFlags(args []string, output io.Writer) (operatorOptions, error) {
	var o operatorOptions
	var redisURLFile string
	var cidrs, endpoints, namespaces, hosts []string
	repeated := func(into *[]string) func(string) error {
		return func(value string) error { *into = append(*into, value); return nil }
	}

	flags := flag.NewFlagSet("weir operator", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.Image, "image", os.Getenv("WEIR_IMAGE"), "`IMAGE` that the Properties' pods run; default: the environment's WEIR_IMAGE")
	flags.StringVar(&redisURLFile, "redis-url-file", "", "`FILE` with the URL of the Redis for Properties that bring none; its user may use acl, function and info")
	flags.Func("watch-namespace", "`NAMESPACE` whose Properties are served; may be repeated; default: all", repeated(&namespaces))
	flags.BoolVar(&o.leaderElection, "leader-elect", false, "let one of several operators work at a time")
	flags.StringVar(&o.metricsListen, "metrics-listen", ":8080", "`ADDRESS` for /metrics; 0 for none")
	flags.StringVar(&o.healthListen, "health-listen", ":8081", "`ADDRESS` for /healthz and /readyz")
	flags.Func("egress-allow-cidr", "private range that deliveries may reach, as `CIDR`; may be repeated", repeated(&cidrs))
	flags.Func("platform-endpoint", "other base URL for a platform type, as `TYPE=URL`; may be repeated", repeated(&endpoints))
	flags.Func("allow-host", "host that Properties may have, as `NAMESPACE=HOST`, where * stands for all namespaces and *.DOMAIN for all its hosts; may be repeated; default: any host", repeated(&hosts))
	flags.Func("allow-ingress-annotation", "annotation that Properties may give their Ingress, as `KEY` or PREFIX*; may be repeated; default: none", repeated(&o.Exposure.AllowedAnnotations))
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
	if o.Image == "" {
		fault("--image: must name the image that the Properties' pods run")
	}
	o.EgressAllowCIDRs = parseRanges(cidrs, fault)
	o.PlatformEndpoints = parseEndpoints(endpoints, fault)
	o.Exposure.AllowedHosts = parseHosts(hosts, fault)
	o.watchNamespaces = slices.Compact(slices.Sorted(slices.Values(namespaces)))
	if redisURLFile != "" {
		content, err := os.ReadFile(redisURLFile)
		if err != nil {
			fault("--redis-url-file: %v", err)
		}
		o.RedisURL = strings.TrimSpace(string(content))
		if err == nil && !strings.Contains(o.RedisURL, "://") {
			fault("--redis-url-file: %s must hold a URL such as redis://user:password@host:6379/0", redisURLFile)
		}
	}
	if faults != nil {
		return o, faults
	}
	return o, nil
}

// parseHosts reads the values of --allow-host.
func parseHosts(list []string, fault func(format string, args ...any)) map[string][]string {
	hosts := map[string][]string{}
	for _, text := range list {
		namespace, host, found := strings.Cut(text, "=")
		if !found || namespace == "" || host == "" {
			fault("--allow-host: %q must be NAMESPACE=HOST, as in shops=*.shop.example.com", text)
			continue
		}
		hosts[namespace] = append(hosts[namespace], host)
	}
	return hosts
}
