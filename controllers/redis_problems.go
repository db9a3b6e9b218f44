package controllers

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/stream"
)

// redisProblems are the conditions for what may be wrong with a Redis, each with what to do about it.
var redisProblems = []struct {
	problem        error
	reason, advice string
}{
	{stream.ErrEvictionEnabled, v1alpha1.ReasonEvictionEnabled, "run CONFIG SET maxmemory-policy noeviction, and write it into Redis's configuration"},
	{stream.ErrVersion, v1alpha1.ReasonRedisUnsupported, ""},
	{stream.ErrDefaultUser, v1alpha1.ReasonRedisUnsupported, "run ACL SETUSER default off ~* &* +@all (see docs/operate/redis.md)"},
	{stream.ErrDenied, v1alpha1.ReasonRedisAdminDenied, "give the user of the Redis URL the commands acl, function and info (see docs/operate/redis.md)"},
	{stream.ErrInfoDenied, v1alpha1.ReasonRedisInfoDenied, "give it to the user of the Redis URL (see docs/operate/redis.md)"},
	{stream.ErrFunctions, v1alpha1.ReasonRedisFunctionsMissing, "use Redis 7.0 or newer, or Valkey, with Functions"},
	{stream.ErrLibrary, v1alpha1.ReasonRedisFunctionsMissing, "remove what has the name with FUNCTION DELETE"},
	{stream.ErrAuthentication, v1alpha1.ReasonRedisAuthenticationFailed, "correct them in the URL, or in Redis"},
	{stream.ErrTLS, v1alpha1.ReasonRedisTLSFailed, "rediss:// is with TLS, redis:// without; caSecretRef names a private authority, clientCertificateSecretRef what to show"},
	{stream.ErrReply, v1alpha1.ReasonRedisProtocolError, "check host and port, and whether it has to be rediss://"},
	{stream.ErrAddress, v1alpha1.ReasonRedisAddressDenied,
		"private addresses, also those that a cluster or Sentinels name, are connected to where the operator allows them: ask for the range with --redis-allow-cidr"},
	{stream.ErrURL, v1alpha1.ReasonSecretInvalid, ""},
	{errTooMany, v1alpha1.ReasonRedisLimitReached, "use one for several Properties, or several namespaces"},
}

// redisProblemOf is the condition for what is wrong with a Redis, nil where nothing is. It repeats nothing that the server
// has answered.
func redisProblemOf(target redisTarget, err error) *conditionReason {
	if err == nil {
		return nil
	}
	problem, field := explainRedis(err), target.field()
	for _, known := range redisProblems {
		if !errors.Is(problem, known.problem) {
			continue
		}
		message, advice := problem.Error(), known.advice
		if target.dedicated != "" {
			advice = cmp.Or(dedicatedAdvice(target.dedicated, known.problem), advice)
		}
		if advice != "" {
			message += "; " + advice
		}
		return reasonf(known.reason, "%s%s", field, message)
	}
	return reasonf(v1alpha1.ReasonRedisUnreachable, "%s%v", field, problem)
}

// dedicatedAdvice is what to do about a problem of a Redis of the name that is made for a Property, whose owner has never written its URL; "" where
// that is the same as elsewhere.
func dedicatedAdvice(name string, problem error) string {
	is := func(known error) bool { return errors.Is(problem, known) }
	switch {
	case is(stream.ErrAuthentication):
		return fmt.Sprintf("delete its pod %s-0: it takes the password of the Secret %s-admin when it starts", name, name)
	case is(stream.ErrTLS):
		return fmt.Sprintf("delete its pod %s-0, which takes the certificates of the Secret %s-tls when it starts; or its Service leads elsewhere", name, name)
	case is(stream.ErrReply):
		return "its Service leads to something else: look at its EndpointSlices"
	case is(stream.ErrEvictionEnabled), is(stream.ErrDefaultUser), is(stream.ErrDenied), is(stream.ErrInfoDenied):
		return fmt.Sprintf("somebody has changed it: delete its pod %s-0, which starts with the configuration and the users that it shall have", name)
	default:
		return ""
	}
}

// explainRedis is an error in words that may be shown to anybody.
func explainRedis(err error) error {
	if errors.Is(err, errTooMany) {
		return errTooMany
	}
	return stream.Explain(err)
}

// deniedByRedis says whether the URL's user may not administer.
func deniedByRedis(err error) bool { return errors.Is(err, stream.ErrDenied) }
