package query

import "github.com/weir-dev/weir/collector/server"

// What failed attempts to authenticate are allowed from one address: so many at once, and one more each second.
const (
	failureBurst      = 60
	failuresPerSecond = 1
	// maxFailing bounds the addresses that are told apart.
	maxFailing = 4096
)

// newFailures limits the rate of failed attempts from each address. It never has a say in attempts that succeed: callers
// behind one proxy share its address, and none of them is to suffer from another's wrong token.
func newFailures() *server.AddressRate {
	return &server.AddressRate{PerSecond: failuresPerSecond, Burst: failureBurst, MaxAddresses: maxFailing}
}
