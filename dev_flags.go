package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/collector/stream"
)

// devOptions are `weir dev`'s flags, checked.
type devOptions struct {
	files         []string
	listen        string
	metricsListen string
	redis         config.Redis
	stateDir      string
	roles         []role.Name
	egress        []netip.Prefix
	endpoints     map[config.PlatformType]string
	// fakes says to put servers of our own in the platforms' place.
	fakes bool
	demo  demoOptions
}

// parseDevFlags reads the flags. It returns [flag.ErrHelp] where help was asked for, else a faultList with
// everything that is wrong.
func parseDevFlags(args []string, output io.Writer) (devOptions, error) {
	var o devOptions
	var roles string
	var cidrs, endpoints []string
	var certificates stream.TLSFiles
	repeated := func(into *[]string) func(string) error {
		return func(value string) error { *into = append(*into, value); return nil }
	}

	flags := flag.NewFlagSet("weir dev", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Func("f", "`FILE` or folder with Property resources and the Secrets they refer to; may be repeated", repeated(&o.files))
	flags.StringVar(&o.listen, "listen", "127.0.0.1:8080", "`ADDRESS` for collecting and reading")
	flags.StringVar(&o.metricsListen, "metrics-listen", "", "`ADDRESS` for /metrics, /livez and /readyz; default: none")
	flags.StringVar(&o.redis.URL, "redis", "", "`URL` of a Redis to use; default: one of its own, with its data below the state directory")
	addTLSFlags(flags, &certificates)
	flags.StringVar(&o.stateDir, "state-dir", ".weir", "`DIRECTORY` for credentials and data")
	flags.StringVar(&roles, "roles", "collect,deliver,query", "the `ROLES` to serve, with commas between")
	flags.Func("egress-allow-cidr", "private range that deliveries may reach, as `CIDR`; may be repeated", repeated(&cidrs))
	flags.BoolVar(&o.fakes, "fake-platforms", false, "deliver to fakes of the platforms on this machine, which print what they get, and to no platform")
	flags.Func("platform-endpoint", "other base URL for a platform type, as `TYPE=URL`; may be repeated", repeated(&endpoints))
	flags.IntVar(&o.demo.events, "demo-events", 0, "make up a past of `N` events for each Property that has none yet")
	flags.IntVar(&o.demo.days, "demo-days", demoDays, "over how many `DAYS` the made-up past is spread")
	flags.Uint64Var(&o.demo.seed, "demo-seed", demoSeed, "`SEED` of the made-up past; the same one makes the same past")

	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(output, "Usage: weir dev -f FILE… [flags]\n\n")
		flags.SetOutput(output)
		flags.PrintDefaults()
		return o, err
	} else if err != nil {
		return o, faultList{err.Error() + `; "weir dev -h" lists the flags`}
	}

	var faults faultList
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if flags.NArg() > 0 {
		fault("%q is no flag; Property files are named with -f", flags.Arg(0))
	}
	if len(o.files) == 0 {
		fault("-f: at least one Property file is needed, as in -f config/samples")
	}
	checkAddress := func(name, address string) {
		if _, _, err := net.SplitHostPort(address); err != nil {
			fault("--%s: %q must be an address with a port, as in 127.0.0.1:8080", name, address)
		}
	}
	checkAddress("listen", o.listen)
	if o.metricsListen != "" {
		checkAddress("metrics-listen", o.metricsListen)
	}
	o.redis.TLS = readTLS("--redis", o.redis.URL, certificates, fault)
	var err error
	if o.roles, err = role.Parse(roles); err != nil {
		fault("--roles: %v", err)
	}
	o.egress = parseRanges("--egress-allow-cidr", cidrs, fault)
	o.endpoints = parseEndpoints(endpoints, fault)
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	faults = append(faults, o.demo.faults(given)...)
	if faults != nil {
		return o, faults
	}
	return o, nil
}

// parseRanges reads the values of a flag that allows ranges.
func parseRanges(name string, cidrs []string, fault func(format string, args ...any)) []netip.Prefix {
	var ranges []netip.Prefix
	for _, cidr := range cidrs {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			fault("%s: %q must be a range as in 10.0.0.0/8 or fd00::/8", name, cidr)
			continue
		}
		ranges = append(ranges, prefix.Masked())
	}
	return ranges
}

// parseEndpoints reads the values of --platform-endpoint.
func parseEndpoints(list []string, fault func(format string, args ...any)) map[config.PlatformType]string {
	endpoints := map[config.PlatformType]string{}
	for _, text := range list {
		kind, address, err := parseEndpoint(text)
		if err != nil {
			fault("--platform-endpoint: %v", err)
			continue
		}
		endpoints[kind] = address
	}
	return endpoints
}

// parseEndpoint reads TYPE=URL.
func parseEndpoint(text string) (config.PlatformType, string, error) {
	name, address, found := strings.Cut(text, "=")
	if !found {
		return "", "", fmt.Errorf("%q must be TYPE=URL, as in Meta=http://127.0.0.1:9100", text)
	}
	kind := config.PlatformType(name)
	if traits, _ := kind.Traits(); !traits.HasEndpoint {
		return "", "", fmt.Errorf("%q is no platform type with an endpoint of its own; those are %s", name, strings.Join(endpointTypes(), ", "))
	}
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
		return "", "", fmt.Errorf("%s must be an http or https URL, as in http://127.0.0.1:9100", name)
	}
	return kind, strings.TrimRight(address, "/"), nil
}

func endpointTypes() []string {
	var names []string
	for _, kind := range config.PlatformTypes() {
		if traits, _ := kind.Traits(); traits.HasEndpoint {
			names = append(names, string(kind))
		}
	}
	return names
}
