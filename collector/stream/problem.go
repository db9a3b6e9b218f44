package stream

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/connect"
)

// What may be wrong with a Redis, beside what is said where it is found.
var (
	// ErrURL says that a Redis URL is not one.
	ErrURL = errors.New("the Redis URL must look like redis://user:password@host:6379/0, or rediss://… for TLS")
	// ErrUnreachable says that nothing answers.
	ErrUnreachable = errors.New("redis cannot be reached")
	// ErrAddress says that [DialOptions.Control] has refused all addresses.
	ErrAddress = errors.New("redis's address is not one that may be connected to")
	// ErrTLS says that there is no encrypted connection.
	ErrTLS = errors.New("redis is not to be reached with TLS")
	// ErrAuthentication says that Redis does not take the URL's user and password.
	ErrAuthentication = errors.New("redis does not take the user and password of its URL")
	// ErrInfoDenied says that the connection's own user may not look at Redis.
	ErrInfoDenied = errors.New("the Redis user may not use the command info")
	// ErrFunctions says that Redis does not have Functions.
	ErrFunctions = errors.New("redis has no Redis Functions, or does not let them be loaded")
	// ErrRefused says that Redis has answered with an error.
	ErrRefused = errors.New("redis refuses a command")
)

// Problem is one of the errors of this package with a word more. Nothing of a URL is in it, and nothing that a server has
// answered: what listens where a tenant's URL leads may be anybody's.
type Problem struct {
	kind   error
	detail string
}

// Error implements error.
func (p *Problem) Error() string { return p.kind.Error() + ": " + p.detail }

// Unwrap returns the error that it is.
func (p *Problem) Unwrap() error { return p.kind }

// kinds are the errors that [Explain] leaves as they are, in the order in which they count.
var kinds = []error{
	ErrURL, ErrCA, ErrClientCertificate, ErrReply, ErrAuthentication, ErrInfoDenied, ErrFunctions, ErrVersion, ErrEvictionEnabled, ErrDefaultUser, ErrDenied,
	ErrLibrary, ErrNoGroup, ErrOtherRedis, ErrUnavailable, ErrTLS, ErrAddress, ErrUnreachable, ErrRefused, ErrRewriteDenied, ErrSnapshots, ErrRewriteFailed,
}

// Explain says what an error of this package's methods is, in words from a closed list that may be shown to whoever
// brought the Redis. It is always one of the errors above, or a [Problem] that is; nil for nil.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*Problem](err); ok {
		return known
	}
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return kind
		}
	}
	if answer, ok := errors.AsType[redis.Error](err); ok {
		return explainRefusal(answer.Error(), err.Error())
	}
	if errors.Is(err, ErrAddress) {
		return ErrAddress
	}
	if detail := connect.TLSDetail(err); detail != "" {
		return &Problem{ErrTLS, detail}
	}
	return &Problem{ErrUnreachable, networkDetail(err)}
}

// codes are the first words of Redis's errors that may be repeated.
var codes = []string{
	"ASK", "BUSY", "CLUSTERDOWN", "CROSSSLOT", "DENIED", "ERR", "EXECABORT", "LOADING", "MASTERDOWN", "MISCONF", "MOVED", "NOPERM",
	"NOREPLICAS", "OOM", "READONLY", "TRYAGAIN", "UNKILLABLE", "WRONGTYPE",
}

// explainRefusal explains an error that Redis has answered; whole has what the library put before it.
func explainRefusal(answer, whole string) error {
	code, _, _ := strings.Cut(answer, " ")
	switch {
	case code == "WRONGPASS", code == "NOAUTH":
		return ErrAuthentication
	case strings.HasPrefix(answer, "ERR max number of clients"):
		return &Problem{ErrUnreachable, "it has as many connections as it takes"}
	case code == "ERR" && strings.Contains(whole, "failed to authenticate"):
		return ErrAuthentication
	case slices.Contains(codes, code):
		return &Problem{ErrRefused, "with the error " + code}
	default:
		return ErrRefused
	}
}

func networkDetail(err error) string {
	switch {
	case errors.Is(err, redis.ErrPoolTimeout):
		err = os.ErrDeadlineExceeded
	case errors.Is(err, redis.ErrClosed):
		err = context.Canceled
	}
	return connect.NetworkDetail(err)
}
