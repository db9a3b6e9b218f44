package operator

import (
	"errors"
	"flag"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/collector/stream"
)

// The flags of [redisCertificates].
const (
	secretFlag = "redis-certificate-secret"
	reloadFlag = "redis-reload-certificates"
)

// redisCertificates says what the operator does for the certificates of its own Redis.
type redisCertificates struct {
	// secret is where it makes them, the zero value for nowhere.
	secret types.NamespacedName
	// reload says that somebody else makes them, and that Redis is told to read them again.
	reload bool
}

func (c redisCertificates) made() bool { return c.secret != types.NamespacedName{} }

func (c *redisCertificates) addFlags(set *flag.FlagSet) {
	set.Func(secretFlag, "make and renew the certificates of the Redis at --redis-url-file, in the Secret `NAMESPACE/NAME`, which has to be there, "+
		"and trust these alone; default: somebody else does", namespacedName(&c.secret, "weir-system/weir-redis-tls"))
	set.BoolVar(&c.reload, reloadFlag, false, "have the Redis at --redis-url-file read its certificates again every hour, which somebody else makes")
}

// namespacedName reads NAMESPACE/NAME.
func namespacedName(into *types.NamespacedName, example string) func(string) error {
	return func(value string) error {
		namespace, name, found := strings.Cut(value, "/")
		if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
			return errors.New("must be NAMESPACE/NAME, as in " + example)
		}
		*into = types.NamespacedName{Namespace: namespace, Name: name}
		return nil
	}
}

func (c *redisCertificates) check(address string, files stream.TLSFiles, errs *flags.Errors) {
	name := secretFlag
	if !c.made() {
		name = reloadFlag
	}
	switch {
	case !c.made() && !c.reload:
	case !strings.HasPrefix(address, "rediss://"):
		errs.Add("--%s: the URL in --redis-url-file must begin with rediss://", name)
	case c.made() && c.reload:
		errs.Add("--%s: goes without --%s, which does the same", reloadFlag, secretFlag)
	case c.made() && files != (stream.TLSFiles{}):
		errs.Add("--%s: goes without --%s, --%s and --%s", secretFlag, flags.RedisCA, flags.RedisCertificate, flags.RedisKey)
	}
}
