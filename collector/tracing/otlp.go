package tracing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// otlpClient posts spans by OTLP over HTTP. The module that OpenTelemetry has for it links all of gRPC, which would
// nearly double the tenant pods' binary; see docs/internals/decisions/tracing.md. It is an otlptrace.Client.
type otlpClient struct {
	http     *http.Client
	endpoint string
	header   http.Header
}

// defaultOTLPTimeout and the port below are the specification's.
const defaultOTLPTimeout = 10 * time.Second

// newOTLPClient reads the variables of the OTLP exporter, those for traces before those for all signals. An error
// names a variable and none of its value, which may hold a credential.
func newOTLPClient(getenv func(string) string) (*otlpClient, error) {
	variable := func(name string) (value, key string) {
		for _, key := range []string{"OTEL_EXPORTER_OTLP_TRACES_" + name, "OTEL_EXPORTER_OTLP_" + name} {
			if value := strings.TrimSpace(getenv(key)); value != "" {
				return value, key
			}
		}
		return "", "OTEL_EXPORTER_OTLP_" + name
	}
	if protocol, key := variable("PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return nil, fmt.Errorf("tracing: %s must be http/protobuf or absent", key)
	}
	c := &otlpClient{header: http.Header{}, http: &http.Client{
		Timeout:       defaultOTLPTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the header may hold a credential
	}}
	endpoint, key := variable("ENDPOINT")
	if endpoint == "" {
		endpoint = "http://localhost:4318"
	}
	parsed, err := url.Parse(endpoint)
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" {
		return nil, fmt.Errorf("tracing: %s must be an http or https URL", key)
	}
	if key != "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" { // that one is the whole URL, the other the base of all signals
		parsed = parsed.JoinPath("v1", "traces")
	}
	c.endpoint = parsed.String()
	if timeout, key := variable("TIMEOUT"); timeout != "" {
		millis, err := strconv.ParseUint(timeout, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("tracing: %s must be a whole number of milliseconds", key)
		}
		c.http.Timeout = time.Duration(millis) * time.Millisecond
	}
	headers, key := variable("HEADERS")
	for pair := range strings.SplitSeq(headers, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, escaped, found := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(escaped))
		if !found || err != nil || strings.TrimSpace(name) == "" {
			return nil, fmt.Errorf("tracing: %s must look like name=value,name=value", key)
		}
		c.header.Set(strings.TrimSpace(name), value)
	}
	c.header.Set("Content-Type", "application/x-protobuf")
	return c, nil
}

// Start has nothing to do: connections are made as they are needed.
func (c *otlpClient) Start(context.Context) error { return nil }

// Stop closes the connections.
func (c *otlpClient) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// errSpansRefused says that the receiver does not take the spans. The status is all that is told of its answer.
var errSpansRefused = errors.New("the receiver of spans does not take them")

// UploadTraces posts the spans. TracesData has the wire format of the service's request, whose Go type needs gRPC.
func (c *otlpClient) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return errors.New("the endpoint of spans is no URL")
	}
	request.Header = c.header.Clone()
	answer, err := c.http.Do(request)
	if failure, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("send spans: %w", failure.Err) // without the URL, in which a password may stand
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)); err != nil {
		return fmt.Errorf("read the answer to spans: %w", err)
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("%w: status %d", errSpansRefused, answer.StatusCode)
	}
	return nil
}
