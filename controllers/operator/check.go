package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/collector/stream"
)

// checkInterval is how long a check waits before it looks again.
const checkInterval = 500 * time.Millisecond

// check looks at an installation from inside the cluster, for `helm test`: whether the operator is ready, and whether
// its Redis is fit to keep events. It looks again until the timeout.
func check(ctx context.Context, args []string, output io.Writer) error {
	var operatorURL, urlFile string
	var certificates stream.TLSFiles
	var timeout time.Duration
	set := flags.NewSet(program + " check")
	set.StringVar(&operatorURL, "operator", "", "base `URL` of the operator's health port; default: it is not looked at")
	set.StringVar(&urlFile, "redis-url-file", "", "`FILE` with the URL of the operator's Redis; default: it is not looked at")
	flags.AddRedisTLS(set, &certificates)
	set.DurationVar(&timeout, "timeout", 30*time.Second, "how long each may take to be as it should")
	if err := flags.Parse(set, "Usage: "+set.Name()+" FLAG…\n\n", args, output); err != nil {
		return err
	}
	if operatorURL == "" && urlFile == "" {
		return flags.Errors{"nothing to check: give --operator, --redis-url-file or both"}
	}
	if operatorURL != "" {
		ready, err := url.JoinPath(operatorURL, "readyz")
		if err != nil {
			return flags.Errors{"--operator: must be a URL such as http://weir-operator:8081"}
		}
		if err := eventually(ctx, timeout, func(ctx context.Context) error { return answersOK(ctx, ready) }); err != nil {
			return fmt.Errorf("the operator is not ready: %w", err)
		}
		fmt.Fprintln(output, "the operator is ready")
	}
	if urlFile != "" {
		if err := checkRedis(ctx, urlFile, certificates, timeout); err != nil {
			return fmt.Errorf("the operator's Redis is not fit: %w", err)
		}
		fmt.Fprintln(output, "the operator's Redis answers, is new enough and evicts nothing")
	}
	return nil
}

// checkRedis says whether the Redis at the URL in a file answers, is new enough and evicts nothing.
func checkRedis(ctx context.Context, urlFile string, certificates stream.TLSFiles, timeout time.Duration) (err error) {
	content, err := os.ReadFile(urlFile)
	if err != nil {
		return err
	}
	address := strings.TrimSpace(string(content))
	var errs flags.Errors
	known := flags.ReadRedisTLS("--redis-url-file", address, certificates, &errs)
	if errs != nil {
		return errs
	}
	client, err := stream.Dial(address, stream.DialOptions{TLS: known})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	return eventually(ctx, timeout, client.Check)
}

// answersOK asks a URL for a 200.
func answersOK(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", address, response.Status)
	}
	return nil
}

// eventually looks until look finds nothing wrong, at most for as long as timeout; it returns what was found last.
func eventually(ctx context.Context, timeout time.Duration, look func(context.Context) error) error {
	deadline := time.Now().Add(timeout)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	var found error
	for {
		err := look(ctx)
		if err == nil {
			return nil
		}
		// What is found once the time is over is that it is over. A connection may notice that before the context.
		if found == nil || time.Now().Before(deadline) {
			found = err
		}
		select {
		case <-ctx.Done():
			return found
		case <-ticker.C:
		}
	}
}
