package fakes

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/weir-dev/weir/collector/platforms"
)

// s3Call is a request to a fake S3; what is "" is as it should be.
type s3Call struct {
	method, path, key, secret, region string
	header                            map[string]string
	body, signed                      string
	at                                time.Time
	unsigned                          bool
}

func (c s3Call) send(t *testing.T, fake *Server) *httptest.ResponseRecorder {
	t.Helper()
	or := func(text, otherwise string) string {
		if text == "" {
			return otherwise
		}
		return text
	}
	r := httptest.NewRequestWithContext(t.Context(), or(c.method, http.MethodPut), "http://s3.test"+or(c.path, "/bucket/p/_weir/x"), strings.NewReader(c.body))
	for name, value := range c.header {
		r.Header.Set(name, value)
	}
	sum := sha256.Sum256([]byte(or(c.signed, c.body)))
	hash := hex.EncodeToString(sum[:])
	r.Header.Set("X-Amz-Content-Sha256", hash)
	if c.at.IsZero() {
		c.at = now
	}
	if !c.unsigned {
		signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
		credentials := aws.Credentials{AccessKeyID: or(c.key, "key"), SecretAccessKey: or(c.secret, "secret")}
		if err := signer.SignHTTP(t.Context(), credentials, r, hash, "s3", or(c.region, "eu-central-1"), c.at); err != nil {
			t.Fatal(err)
		}
	}
	answer := httptest.NewRecorder()
	fake.ServeHTTP(answer, r)
	return answer
}

func TestS3IsAsStrictAsItIs(t *testing.T) {
	create := map[string]string{"If-None-Match": "*"}
	for name, tt := range map[string]struct {
		call   s3Call
		status int
		code   string
	}{
		"an object that is created":               {s3Call{header: create}, 200, ""},
		"a request that is not signed":            {s3Call{header: create, unsigned: true}, 403, "AccessDenied"},
		"another key":                             {s3Call{header: create, key: "other"}, 403, "InvalidAccessKeyId"},
		"another secret":                          {s3Call{header: create, secret: "other"}, 403, "SignatureDoesNotMatch"},
		"another region":                          {s3Call{header: create, region: "us-east-1"}, 400, "AuthorizationHeaderMalformed"},
		"a clock that is wrong":                   {s3Call{header: create, at: now.Add(16 * time.Minute)}, 403, "RequestTimeTooSkewed"},
		"another body than was signed":            {s3Call{header: create, body: "a", signed: "b"}, 400, "XAmzContentSHA256Mismatch"},
		"another bucket":                          {s3Call{header: create, path: "/other/x"}, 404, "NoSuchBucket"},
		"an object that is there already":         {s3Call{header: create, path: "/bucket/there"}, 412, "PreconditionFailed"},
		"a write over an object that has changed": {s3Call{header: map[string]string{"If-Match": `"other"`}, path: "/bucket/there"}, 412, "PreconditionFailed"},
		"a write over an object that is gone":     {s3Call{header: map[string]string{"If-Match": `"x"`}}, 404, "NoSuchKey"},
		"a write without a condition":             {s3Call{}, 400, "InvalidRequest"},
		"a condition that S3 has not":             {s3Call{header: map[string]string{"If-None-Match": `"x"`}}, 501, "NotImplemented"},
		"a file that is none":                     {s3Call{header: create, path: "/bucket/a.parquet", body: "text"}, 400, "InvalidRequest"},
		"a deletion":                              {s3Call{method: http.MethodDelete}, 405, "MethodNotAllowed"},
		"a call that is not made":                 {s3Call{method: http.MethodGet, path: "/bucket?acl="}, 501, "NotImplemented"},
		"a listing in the first version":          {s3Call{method: http.MethodGet, path: "/bucket"}, 501, "NotImplemented"},
		"a listing":                               {s3Call{method: http.MethodGet, path: "/bucket?list-type=2&prefix=the"}, 200, "<Key>there</Key>"},
		"a part of an object":                     {s3Call{method: http.MethodGet, path: "/bucket/there", header: map[string]string{"Range": "bytes=1-2"}}, 206, "bc"},
		"a part beyond its end":                   {s3Call{method: http.MethodGet, path: "/bucket/there", header: map[string]string{"Range": "bytes=9-10"}}, 416, "InvalidRange"},
		"an object that is not there":             {s3Call{method: http.MethodGet, path: "/bucket/none"}, 404, "NoSuchKey"},
		"an object that is another by now":        {s3Call{method: http.MethodGet, path: "/bucket/there", header: map[string]string{"If-Match": `"x"`}}, 412, "PreconditionFailed"},
	} {
		t.Run(name, func(t *testing.T) {
			fake := newS3(t)
			if answer := (s3Call{path: "/bucket/there", body: "abcd", header: create}).send(t, fake); answer.Code != 200 {
				t.Fatalf("%d %s", answer.Code, answer.Body)
			}
			if got := tt.call.send(t, fake); got.Code != tt.status || !strings.Contains(got.Body.String(), tt.code) {
				t.Errorf("got %d %s, want %d with %q", got.Code, got.Body, tt.status, tt.code)
			}
		})
	}
}

func newS3(t *testing.T) *Server {
	t.Helper()
	fake, err := New(platforms.TypeS3, []Account{{
		Platform:    platforms.Platform{Name: "p", Settings: platforms.Settings{S3: &platforms.S3{Bucket: "bucket", Region: "eu-central-1"}}},
		Credentials: map[string]string{"accessKeyID": "key", "secretAccessKey": "secret"},
	}}, nil, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	return fake
}

func TestS3ListsAThousandKeysAPage(t *testing.T) {
	fake := newS3(t)
	for i := range 1001 {
		(s3Call{path: fmt.Sprintf("/bucket/k%04d", i), header: map[string]string{"If-None-Match": "*"}}).send(t, fake)
	}
	first := (s3Call{method: http.MethodGet, path: "/bucket?list-type=2"}).send(t, fake).Body.String()
	second := (s3Call{method: http.MethodGet, path: "/bucket?continuation-token=k0999&list-type=2"}).send(t, fake).Body.String()
	if strings.Count(first, "<Key>") != 1000 || !strings.Contains(first, "<IsTruncated>true") || !strings.Contains(first, "k0999</NextContinuationToken>") {
		t.Errorf("the first page is not one: %.200s", first)
	}
	if strings.Count(second, "<Key>") != 1 || !strings.Contains(second, "<IsTruncated>false") {
		t.Errorf("the second page is not one: %.200s", second)
	}
}
