package backup

import (
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// hasty is how long tests wait.
var hasty = patience{answer: 100 * time.Millisecond, call: 400 * time.Millisecond, longCall: 800 * time.Millisecond, stall: 200 * time.Millisecond}

// drip sends a byte at a time, for as long as somebody listens.
func drip(w http.ResponseWriter, r *http.Request) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
			_, _ = io.WriteString(w, " ")
			_ = http.NewResponseController(w).Flush()
		}
	}
}

func TestABucketThatKeepsSilentIsGivenUp(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		// is says whether a request is one that is answered badly, by does. Without does nothing is answered.
		is   func(r *http.Request) bool
		does http.HandlerFunc
		read bool
	}{
		"which never answers":                  {is: func(*http.Request) bool { return true }},
		"which drips":                          {is: func(*http.Request) bool { return true }, does: drip},
		"which takes no part":                  {is: func(r *http.Request) bool { return r.Method == http.MethodPut }},
		"which does not finish":                {is: func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Query().Has("uploadId") }},
		"which drips while it finishes":        {is: func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Query().Has("uploadId") }, does: drip},
		"which never answers, of what is read": {is: func(*http.Request) bool { return true }, read: true},
		"which drips what is read":             {is: func(*http.Request) bool { return true }, does: drip, read: true},
		"which begins what is read and says nothing more": {is: func(*http.Request) bool { return true }, read: true, does: func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, magic)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := startParts(t)
			over := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case !tt.is(r):
					s.ServeHTTP(w, r)
				case tt.does != nil:
					tt.does(w, r)
				default:
					<-over
				}
			}))
			t.Cleanup(server.Close)
			t.Cleanup(func() { close(over) })
			b := &bucketFlags{region: "us-east-1", endpoint: server.URL, pathStyle: true, patience: hasty}
			getenv := func(name string) string { return keysOfBucket[name] }
			var err error
			if tt.read {
				var body io.ReadCloser
				if body, err = b.open(t.Context(), "s3://backups/one", getenv); err == nil {
					_, err = io.Copy(io.Discard, body)
					_ = body.Close()
				}
			} else {
				err = writeTo(t, b, getenv)
			}
			if err == nil || !strings.Contains(err.Error(), "the bucket's server answers too slowly, or not at all") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// writeTo writes an object of two parts.
func writeTo(t *testing.T, b *bucketFlags, getenv func(string) string) error {
	t.Helper()
	o, err := b.target("s3://backups/", "default/shop", time.Now(), getenv, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	w, err := o.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.CopyN(w, rand.Reader, partBytes+1)
	if err == nil {
		err = o.finish(t.Context())
	}
	return err
}

// What is put into Redis slowly is not the bucket's slowness.
func TestABucketIsNotBlamedForWhoReadsSlowly(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	body := &pacedBody{ReadCloser: io.NopCloser(strings.NewReader(strings.Repeat("x", 10))), stall: time.Minute, giveUp: func() { t.Error("it is given up") }, now: func() time.Time { return now }}
	for {
		n, err := body.Read(make([]byte, 1))
		if errors.Is(err, io.EOF) {
			return
		}
		if n != 1 || err != nil {
			t.Fatal(n, err)
		}
		now = now.Add(time.Hour)
	}
}
