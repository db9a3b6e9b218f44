package validation_test

import (
	"strings"
	"testing"
)

func TestWhomAPropertyExcludes(t *testing.T) {
	const (
		badCIDR     = "must be a range such as 203.0.113.0/24 or 2001:db8::/32; a single address ends with /32 or /128"
		badHost     = "must be a host in lower case, without scheme, port and path, such as staging.shop.example, or *.shop.example for every host below"
		badClientID = "must be 1 to 255 characters without control characters or space around them"
	)
	testRules(t, map[string]rule{
		"ranges, hosts, client ids and bots are accepted": {spec: `exclude:
  cidrs: [203.0.113.0/24, 203.0.113.7/32, "2001:db8::/32", "::1/128"]
  hosts: [staging.shop.example, "*.test.shop.example", localhost, my_host.example, 127.0.0.1]
  clientIDs: ["1234567890.1700000000", "tester one", é]
  bots: false`},
		"an address without a length is refused":    {spec: "exclude: {cidrs: [203.0.113.7]}", want: []string{"spec.exclude.cidrs[0]: " + badCIDR}},
		"a range that there cannot be is refused":   {spec: "exclude: {cidrs: [203.0.113.0/24, 203.0.113.0/33]}", want: []string{"spec.exclude.cidrs[1]: " + badCIDR}},
		"a URL is no host":                          {spec: "exclude: {hosts: ['https://shop.example/']}", want: []string{"spec.exclude.hosts[0]: " + badHost}},
		"a host with a port is refused":             {spec: "exclude: {hosts: ['shop.example:8080']}", want: []string{"spec.exclude.hosts[0]: " + badHost}},
		"a host in upper case is refused":           {spec: "exclude: {hosts: [Shop.example]}", want: []string{"spec.exclude.hosts[0]: " + badHost}},
		"a * within a host is refused":              {spec: "exclude: {hosts: ['a.*.example']}", want: []string{"spec.exclude.hosts[0]: " + badHost}},
		"a client id with space around is refused":  {spec: "exclude: {clientIDs: [' a']}", want: []string{"spec.exclude.clientIDs[0]: " + badClientID}},
		"a client id of nothing is refused":         {spec: "exclude: {clientIDs: ['']}", want: []string{"spec.exclude.clientIDs[0]: " + badClientID}},
		"a client id of 256 characters is too long": {spec: "exclude: {clientIDs: [" + strings.Repeat("a", 256) + "]}", want: []string{"spec.exclude.clientIDs[0]: may not be more than 255 bytes"}},
		"101 hosts are too many":                    {spec: "exclude: {hosts: [" + repeated(101, "h%d.example") + "]}", want: []string{"spec.exclude.hosts: must have at most 100 items"}},
		"101 ranges are too many":                   {spec: "exclude: {cidrs: [" + repeated(101, "10.0.0.%d/32") + "]}", want: []string{"spec.exclude.cidrs: must have at most 100 items"}},
		"101 client ids are too many":               {spec: "exclude: {clientIDs: [" + repeated(101, "c%d") + "]}", want: []string{"spec.exclude.clientIDs: must have at most 100 items"}},
	})
}
