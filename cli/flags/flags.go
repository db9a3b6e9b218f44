// Package flags reads the flags that weir-operator and weir have in common, and says what is wrong with a command line.
package flags

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"

	"github.com/weir-dev/weir/collector/platforms"
)

// Errors is what is wrong with a command's input: one line each, naming where and what would be right.
type Errors []string

// Error joins the lines' number and the first.
func (e Errors) Error() string {
	return fmt.Sprintf("%d errors, the first: %s", len(e), e[0])
}

// Add notes one more.
func (e *Errors) Add(format string, args ...any) { *e = append(*e, fmt.Sprintf(format, args...)) }

// Err returns the errors, nil where there are none.
func (e Errors) Err() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// ExitCode reports err in the name of a program, a line for each of [Errors], and says how the program ends for it: 0, 1 for
// what went wrong, 2 for what was asked wrongly.
func ExitCode(program string, err error, stderr io.Writer) int {
	var wrong Errors
	switch {
	case err == nil || errors.Is(err, context.Canceled) || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &wrong):
		for _, line := range wrong {
			fmt.Fprintf(stderr, "%s: %s\n", program, line)
		}
		return 2
	default:
		fmt.Fprintf(stderr, "%s: %v\n", program, err)
		return 1
	}
}

// NewSet returns an empty set whose messages [Parse] prints.
func NewSet(command string) *flag.FlagSet {
	set := flag.NewFlagSet(command, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	return set
}

// Parse reads the flags of a command that takes no arguments beside them. Where help was asked for it prints usage and the
// flags, and returns [flag.ErrHelp].
func Parse(set *flag.FlagSet, usage string, args []string, output io.Writer) error {
	err := set.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(output, usage)
		set.SetOutput(output)
		set.PrintDefaults()
		return err
	case err != nil:
		return Errors{fmt.Sprintf(`%v; "%s -h" lists the flags`, err, set.Name())}
	case set.NArg() > 0:
		return Errors{fmt.Sprintf(`%q is no flag; "%s -h" lists them`, set.Arg(0), set.Name())}
	}
	return nil
}

// ParseMixed is [Parse] for a command that takes arguments too, which may stand before, between and behind the flags. It returns
// them.
func ParseMixed(set *flag.FlagSet, usage string, args []string, output io.Writer) ([]string, error) {
	var found []string
	for {
		err := set.Parse(args)
		switch {
		case errors.Is(err, flag.ErrHelp):
			return nil, Parse(set, usage, []string{"-h"}, output)
		case err != nil:
			return nil, Errors{fmt.Sprintf(`%v; "%s -h" lists the flags`, err, set.Name())}
		case set.NArg() == 0:
			return found, nil
		}
		found, args = append(found, set.Arg(0)), set.Args()[1:]
	}
}

// Repeated returns what a flag that may be repeated is read with.
func Repeated(into *[]string) func(string) error {
	return func(value string) error { *into = append(*into, value); return nil }
}

// CheckAddress looks whether the value of a flag is an address with a port, as in the example.
func CheckAddress(name, address, example string, errs *Errors) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		errs.Add("%s: %q must be HOST:PORT, as in %s", name, address, example)
	}
}

// ParseRanges reads the values of a flag that allows ranges.
func ParseRanges(name string, cidrs []string, errs *Errors) []netip.Prefix {
	var ranges []netip.Prefix
	for _, cidr := range cidrs {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			errs.Add("%s: %q must be a range as in 10.0.0.0/8 or fd00::/8", name, cidr)
			continue
		}
		ranges = append(ranges, prefix.Masked())
	}
	return ranges
}

// AddTrustedProxies adds the flag of the proxies that are believed.
func AddTrustedProxies(set *flag.FlagSet, cidrs *[]string) {
	set.Func("trusted-proxy-cidr", "range of the proxies before the collectors whose X-Forwarded-For is believed, as `CIDR`; may be repeated; "+
		"default: none, so that a visitor's address is the connection's", Repeated(cidrs))
}

// ParseTrustedProxies reads the values of --trusted-proxy-cidr.
func ParseTrustedProxies(cidrs []string, errs *Errors) []netip.Prefix {
	ranges := ParseRanges("--trusted-proxy-cidr", cidrs, errs)
	for _, r := range ranges {
		if r.Bits() == 0 {
			errs.Add("--trusted-proxy-cidr: %s would believe anybody; name the ranges that the proxies connect from", r)
		}
	}
	return ranges
}

// AddConsentWhenAbsent adds the flag of what becomes of events whose visitors have said nothing.
func AddConsentWhenAbsent(set *flag.FlagSet, text *string) {
	set.StringVar(text, "consent-when-absent", string(platforms.Send), "`WORD` for what becomes of events whose visitors have said nothing of a purpose that a platform requires: "+
		"Send, as Properties decide, or Withhold, whatever they say")
}

// ParseConsentWhenAbsent says whether --consent-when-absent withholds such events from the platforms of all Properties.
func ParseConsentWhenAbsent(text string, errs *Errors) (withhold bool) {
	if text != string(platforms.Send) && text != string(platforms.Withhold) {
		errs.Add("--consent-when-absent: %q must be Send or Withhold", text)
	}
	return text == string(platforms.Withhold)
}

// ParseEndpoints reads the values of --platform-endpoint.
func ParseEndpoints(list []string, errs *Errors) map[platforms.Type]string {
	endpoints := map[platforms.Type]string{}
	for _, text := range list {
		kind, address, err := parseEndpoint(text)
		if err != nil {
			errs.Add("--platform-endpoint: %v", err)
			continue
		}
		endpoints[kind] = address
	}
	return endpoints
}

// parseEndpoint reads TYPE=URL.
func parseEndpoint(text string) (platforms.Type, string, error) {
	name, address, found := strings.Cut(text, "=")
	if !found {
		return "", "", errors.New("must be TYPE=URL, as in Meta=http://127.0.0.1:9100") // the URL may hold a password
	}
	kind := platforms.Type(name)
	if traits, _ := kind.Traits(); !traits.HasEndpoint {
		return "", "", fmt.Errorf("%q is no platform type with an endpoint of its own; those are %s", name, strings.Join(endpointTypes(), ", "))
	}
	if !platforms.IsWebURL(address) {
		return "", "", fmt.Errorf("%s must be an http or https URL, as in http://127.0.0.1:9100", name)
	}
	return kind, strings.TrimRight(address, "/"), nil
}

func endpointTypes() []string {
	var names []string
	for _, kind := range platforms.Types() {
		if traits, _ := kind.Traits(); traits.HasEndpoint {
			names = append(names, string(kind))
		}
	}
	return names
}
