package main

import (
	"cmp"
	"flag"
	"io"
	"net/netip"

	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/collector/stream"
)

// devOptions are `weir dev`'s flags, checked.
type devOptions struct {
	files         []string
	listen        string
	metricsListen string
	redis         config.Redis
	// clickHouse is where events are kept beyond what Redis retains: nowhere where there is no URL, in one of our own where that is
	// [ownClickHouse].
	clickHouse config.ClickHouse
	// clickHouseFrom is what says so.
	clickHouseFrom string
	stateDir       string
	roles          []role.Name
	// usualRoles says that nobody has said which.
	usualRoles bool
	egress     []netip.Prefix
	proxies    []netip.Prefix
	// withholdUnsaid is what --consent-when-absent says.
	withholdUnsaid bool
	endpoints      map[platforms.Type]string
	// fakes says to put servers of our own in the platforms' place.
	fakes bool
	demo  demoOptions
}

// usualRoles are those that are served where nobody says which; where there are histories the archive is as well.
const usualRoles = "collect,deliver,query"

// parseDevFlags reads the flags. It returns [flag.ErrHelp] where help was asked for, else [flags.Errors] with
// everything that is wrong.
func parseDevFlags(args []string, output io.Writer) (devOptions, error) {
	var o devOptions
	var roles, whenAbsent, clickHouseCA string
	var cidrs, proxies, endpoints []string
	var certificates stream.TLSFiles

	set := flags.NewSet("weir dev")
	set.Func("f", "`FILE` or folder with Property resources and the Secrets they refer to; may be repeated", flags.Repeated(&o.files))
	set.StringVar(&o.listen, "listen", "127.0.0.1:8080", "`ADDRESS` for collecting and reading")
	set.StringVar(&o.metricsListen, "metrics-listen", "", "`ADDRESS` for /metrics, /livez and /readyz; default: none")
	set.StringVar(&o.redis.URL, "redis", "", "`URL` of a Redis to use; default: one of its own, with its data below the state directory")
	flags.AddRedisTLS(set, &certificates)
	set.StringVar(&o.clickHouse.URL, "clickhouse", "", "`URL` of a ClickHouse to keep events in beyond what Redis retains, with a user who may administer; own for one of its own, with its data below the state directory; default: the environment's "+clickHouseVariable+", which nobody else sees, or none")
	set.StringVar(&clickHouseCA, "clickhouse-ca-file", "", "`FILE` with the authorities that ClickHouse's certificate may come from, in PEM; default: the system's")
	set.StringVar(&o.stateDir, "state-dir", ".weir", "`DIRECTORY` for credentials and data")
	set.StringVar(&roles, "roles", "", "the `ROLES` to serve, with commas between; default: collect,deliver,query, and archive where there is a history")
	set.Func("egress-allow-cidr", "private range that deliveries may reach, as `CIDR`; may be repeated", flags.Repeated(&cidrs))
	flags.AddTrustedProxies(set, &proxies)
	flags.AddConsentWhenAbsent(set, &whenAbsent)
	set.BoolVar(&o.fakes, "fake-platforms", false, "deliver to fakes of the platforms on this machine, which print what they get, and to no platform")
	set.Func("platform-endpoint", "other base URL for a platform type, as `TYPE=URL`; may be repeated", flags.Repeated(&endpoints))
	set.IntVar(&o.demo.events, "demo-events", 0, "make up a past of `N` events for each Property that has none yet")
	set.IntVar(&o.demo.days, "demo-days", demoDays, "over how many `DAYS` the made-up past is spread")
	set.Uint64Var(&o.demo.seed, "demo-seed", demoSeed, "`SEED` of the made-up past; the same one makes the same past")

	if err := flags.Parse(set, "Usage: weir dev -f FILE… [flags]\n\n", args, output); err != nil {
		return o, err
	}

	var errs flags.Errors
	if len(o.files) == 0 {
		errs.Add("-f: at least one Property file is needed, as in -f config/samples")
	}
	flags.CheckAddress("--listen", o.listen, "127.0.0.1:8080", &errs)
	if o.metricsListen != "" {
		flags.CheckAddress("--metrics-listen", o.metricsListen, "127.0.0.1:8080", &errs)
	}
	o.redis.TLS = flags.ReadRedisTLS("--redis", o.redis.URL, certificates, &errs)
	o.checkClickHouse(clickHouseCA, &errs)
	o.usualRoles = roles == ""
	var err error
	if o.roles, err = role.Parse(cmp.Or(roles, usualRoles)); err != nil {
		errs.Add("--roles: %v", err)
	}
	o.egress = flags.ParseRanges("--egress-allow-cidr", cidrs, &errs)
	o.proxies = flags.ParseTrustedProxies(proxies, &errs)
	o.withholdUnsaid = flags.ParseConsentWhenAbsent(whenAbsent, &errs)
	o.endpoints = flags.ParseEndpoints(endpoints, &errs)
	given := map[string]bool{}
	set.Visit(func(f *flag.Flag) { given[f.Name] = true })
	errs = append(errs, o.demo.check(given)...)
	return o, errs.Err()
}
