package deliver

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/deliver/lake"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

// lakeOf is the lake of a platform that has a bucket. put is called before each write of an object.
func lakeOf(
	cfg platforms.Platform, opened *adapter.Platform, property string, client *http.Client, put func(), erased func(*event.Event, time.Time) bool,
) *lake.Lake {
	options, _ := opened.Bucket()
	options.Client, options.Put = client, put
	return lake.New(lake.NewBucket(options), lakePrefix(cfg, property), erased)
}

// lakePrefix is what the keys of a platform's files begin with.
func lakePrefix(cfg platforms.Platform, property string) string {
	if cfg.S3.Prefix == "" {
		return property + "/" + cfg.Name + "/"
	}
	return cfg.S3.Prefix + "/"
}

// bucketError is a failure of a platform's bucket.
type bucketError struct{ cause error }

// Error says no more than the verdict: what the client says shows the address.
func (e *bucketError) Error() string {
	text := "the bucket: " + e.verdict(context.Background()).Reason
	if foreign, is := errors.AsType[*lake.NotOursError](e.cause); is {
		text += ", object " + foreign.Key
	}
	return text
}

// Unwrap returns the cause.
func (e *bucketError) Unwrap() error { return e.cause }

// unnotedError says that Redis could not be told what is about to be written to a bucket.
type unnotedError struct{ cause error }

// Error returns the cause's.
func (e *unnotedError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *unnotedError) Unwrap() error { return e.cause }

// verdict is what the failure means for the platform.
func (e *bucketError) verdict(ctx context.Context) adapter.Verdict {
	var refused *lake.RefusedError
	switch {
	case errors.Is(e.cause, lake.ErrUnconditional):
		return adapter.Verdict{Class: adapter.Config, Reason: "no_conditional_writes"}
	case errors.Is(e.cause, lake.ErrChanged):
		return adapter.Verdict{Class: adapter.Retry, Reason: "changed_meanwhile"}
	case errors.Is(e.cause, lake.ErrGone):
		return adapter.Verdict{Class: adapter.Config, Reason: "file_deleted"}
	case errors.Is(e.cause, lake.ErrNotOurs):
		return adapter.Verdict{Class: adapter.Config, Reason: "not_parquet"}
	case errors.As(e.cause, &refused):
		return refusal(refused)
	default:
		return adapter.Verdict{Class: adapter.Retry, Reason: failureReason(ctx, e.cause)}
	}
}

// refusal says what an answer of a bucket's server means.
func refusal(refused *lake.RefusedError) adapter.Verdict {
	reason := "http_" + strconv.Itoa(refused.Status)
	switch refused.Code {
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidSecurity", "NotSignedUp", "AccountProblem", "InvalidToken", "ExpiredToken":
		return adapter.Verdict{Class: adapter.Auth, Reason: "unauthorized"}
	case "NoSuchBucket":
		return adapter.Verdict{Class: adapter.Config, Reason: "no_such_bucket"}
	case "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		return adapter.Verdict{Class: adapter.Config, Reason: "wrong_region"}
	case "NotImplemented":
		return adapter.Verdict{Class: adapter.Config, Reason: "no_conditional_writes"}
	case "RequestTimeTooSkewed":
		return adapter.Verdict{Class: adapter.Retry, Reason: "clock_skewed"}
	case "SlowDown", "RequestLimitExceeded", "TooManyRequests", "Throttling":
		return adapter.Verdict{Class: adapter.Throttle, Reason: "throttled"}
	}
	switch {
	case refused.Status == http.StatusUnauthorized:
		return adapter.Verdict{Class: adapter.Auth, Reason: "unauthorized"}
	case refused.Status == http.StatusTooManyRequests:
		return adapter.Verdict{Class: adapter.Throttle, Reason: "throttled"}
	case refused.Status == http.StatusRequestTimeout, refused.Status >= 500, refused.Code == "RequestTimeout":
		return adapter.Verdict{Class: adapter.Retry, Reason: reason}
	case refused.Status >= 300 && refused.Status < 400:
		return adapter.Verdict{Class: adapter.Config, Reason: "redirected"}
	default:
		return adapter.Verdict{Class: adapter.Config, Reason: reason}
	}
}

// lakes opens the lakes of a property's platforms, those that are suspended among them, for persons to be erased from them.
type lakes struct {
	property    config.Property
	credentials func(platform string) (map[string]string, error)
	client      *http.Client
	count       func(platform string) func()
	// writer returns what the one who writes a platform's files has written down.
	writer func(ctx context.Context, platform string) (string, error)
}

// namedLake is the lake of a platform.
type namedLake struct {
	platform string
	*lake.Lake
}

// open fails where a platform's Secret does not suffice.
func (l *lakes) open() ([]namedLake, error) {
	var list []namedLake
	for _, cfg := range l.property.Platforms {
		if cfg.S3 == nil {
			continue
		}
		opened, err := openWith(l.credentials, &l.property, cfg)
		if err != nil {
			return nil, err
		}
		property := l.property.Namespace + "/" + l.property.Name
		nobody := func(*event.Event, time.Time) bool { return false } // files are looked through for persons one way alone
		list = append(list, namedLake{cfg.Name, lakeOf(cfg, opened, property, l.client, l.count(cfg.Name), nobody)})
	}
	return list, nil
}

// erase takes the rows that are wanted out of a lake's files, and keeps from it what somebody has noted as under way to it. A bucket
// that does not exist has none.
func (l *namedLake) erase(ctx context.Context, note string, wanted func(*lake.Identity) bool) (removed int, err error) {
	if err = l.Void(ctx, note); err == nil {
		removed, err = l.Search(ctx, wanted)
	}
	var refused *lake.RefusedError
	if errors.As(err, &refused) && refused.Code == "NoSuchBucket" {
		return 0, nil
	}
	if err != nil {
		return removed, &bucketError{err}
	}
	return removed, nil
}
