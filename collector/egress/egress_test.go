package egress

import (
	"net/netip"
	"testing"
)

func TestGuard(t *testing.T) {
	for name, test := range map[string]struct {
		allowed []string
		address string
		want    bool
	}{
		"a public IPv4 address": {nil, "93.184.216.34", true},
		"a public IPv6 address": {nil, "2606:4700::1111", true},
		"this network":          {nil, "0.0.0.0", false},
		"loopback":              {nil, "127.0.0.1", false},
		"loopback, another one": {nil, "127.8.9.10", false},
		"private, ten":          {nil, "10.1.2.3", false},
		"private, 172.16":       {nil, "172.31.255.255", false},
		"just beside private":   {nil, "172.32.0.1", true},
		"private, 192.168":      {nil, "192.168.0.1", false},
		"carrier-grade NAT":     {nil, "100.64.0.1", false},
		"link-local":            {nil, "169.254.0.1", false},
		"a cloud's metadata":    {nil, "169.254.169.254", false},
		"a cloud's metadata within carrier-grade NAT": {nil, "100.100.100.200", false},
		"a cloud's metadata among protocol addresses": {nil, "192.0.0.192", false},
		"a cloud's node agent at a public address":    {nil, "168.63.129.16", false},
		"multicast":                          {nil, "224.0.0.1", false},
		"broadcast":                          {nil, "255.255.255.255", false},
		"reserved":                           {nil, "240.0.0.1", false},
		"documentation":                      {nil, "203.0.113.7", false},
		"benchmarking":                       {nil, "198.19.0.1", false},
		"unspecified IPv6":                   {nil, "::", false},
		"loopback IPv6":                      {nil, "::1", false},
		"link-local IPv6":                    {nil, "fe80::1", false},
		"link-local IPv6 with a zone":        {nil, "fe80::1%eth0", false},
		"unique local IPv6":                  {nil, "fd00:ec2::254", false},
		"site-local IPv6":                    {nil, "fec0::1", false},
		"multicast IPv6":                     {nil, "ff02::1", false},
		"IPv4-mapped loopback":               {nil, "::ffff:127.0.0.1", false},
		"IPv4-mapped metadata":               {nil, "::ffff:169.254.169.254", false},
		"IPv4-compatible loopback":           {nil, "::127.0.0.1", false},
		"NAT64 to loopback":                  {nil, "64:ff9b::7f00:1", false},
		"NAT64 to metadata":                  {nil, "64:ff9b::a9fe:a9fe", false},
		"NAT64 to a public address":          {nil, "64:ff9b::5db8:d822", true},
		"local-use NAT64":                    {nil, "64:ff9b:1::1", false},
		"6to4":                               {nil, "2002:7f00:1::1", false},
		"Teredo":                             {nil, "2001:0:4136:e378::1", false},
		"documentation IPv6":                 {nil, "2001:db8::1", false},
		"an allowed private address":         {[]string{"10.0.0.0/8"}, "10.1.2.3", true},
		"an address beside the allowed ones": {[]string{"10.1.0.0/16"}, "10.2.0.1", false},
		"an IPv4-mapped form of an allowed address":     {[]string{"127.0.0.0/8"}, "::ffff:127.0.0.1", true},
		"an allowed IPv6 address":                       {[]string{"fd00::/8"}, "fd12::1", true},
		"one that the allowed IPv4 range has no say on": {[]string{"0.0.0.0/0"}, "::1", false},
		"a private address within all":                  {[]string{"0.0.0.0/0"}, "10.1.2.3", true},
		"loopback within all":                           {[]string{"0.0.0.0/0", "::/0"}, "127.0.0.1", false},
		"loopback in its own range":                     {[]string{"127.0.0.0/8"}, "127.0.0.1", true},
		"loopback by itself":                            {[]string{"127.0.0.1/32"}, "127.0.0.1", true},
		"loopback IPv6 within all":                      {[]string{"0.0.0.0/0", "::/0"}, "::1", false},
		"a cloud's metadata within all":                 {[]string{"0.0.0.0/0", "::/0"}, "169.254.169.254", false},
		"IPv4-mapped metadata within all":               {[]string{"0.0.0.0/0", "::/0"}, "::ffff:169.254.169.254", false},
		"NAT64 to metadata within all of IPv4":          {[]string{"0.0.0.0/0"}, "64:ff9b::a9fe:a9fe", false},
		"metadata within allowed carrier-grade NAT":     {[]string{"100.64.0.0/10"}, "100.100.100.200", false},
		"a neighbour of that metadata":                  {[]string{"100.64.0.0/10"}, "100.100.100.201", true},
		"metadata within allowed unique local IPv6":     {[]string{"fd00::/8"}, "fd00:ec2::254", false},
		"link-local IPv6 within all":                    {[]string{"::/0"}, "fe80::1", false},
		"this network within all":                       {[]string{"0.0.0.0/0"}, "0.0.0.0", false},
	} {
		t.Run(name, func(t *testing.T) {
			guard := Guard{}
			for _, text := range test.allowed {
				guard.Allowed = append(guard.Allowed, netip.MustParsePrefix(text))
			}
			if got := guard.Permits(netip.MustParseAddr(test.address)); got != test.want {
				t.Errorf("Permits(%s) = %t, want %t", test.address, got, test.want)
			}
		})
	}
}
