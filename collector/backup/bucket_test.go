package backup

import (
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

// parts is a server that speaks as much of S3 as a backup needs: uploads in parts, and reading. hack/s3 has the same done by a server
// of others'.
type parts struct {
	mu      sync.Mutex
	objects map[string][]byte
	uploads map[string]map[string][]byte
	// of are the objects that uploads are of, BUCKET/KEY.
	of map[string]string
	// fails answers a request with a status, 0 for none.
	fails  func(r *http.Request) int
	unsure int // requests that were not signed
}

func (s *parts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=id/") {
		s.unsure++
	}
	if status := s.fails(r); status != 0 {
		w.WriteHeader(status)
		fmt.Fprint(w, xml.Header+"<Error><Code>Refused</Code></Error>")
		return
	}
	query, key := r.URL.Query(), r.URL.Path
	upload := s.uploads[query.Get("uploadId")]
	switch {
	case r.Method == http.MethodPost && query.Has("uploads"):
		id := fmt.Sprint("upload-", len(s.of))
		s.uploads[id], s.of[id] = map[string][]byte{}, strings.TrimPrefix(key, "/")
		fmt.Fprint(w, xml.Header+"<InitiateMultipartUploadResult><UploadId>"+id+"</UploadId></InitiateMultipartUploadResult>")
	case r.Method == http.MethodPut && upload != nil:
		upload[query.Get("partNumber")] = body
		w.Header().Set("ETag", `"part"`)
	case r.Method == http.MethodPost && upload != nil:
		var whole []byte
		for n := range len(upload) {
			whole = append(whole, upload[fmt.Sprint(n+1)]...)
		}
		s.objects[key] = whole
		delete(s.uploads, query.Get("uploadId"))
		fmt.Fprint(w, xml.Header+"<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")
	case r.Method == http.MethodDelete && upload != nil:
		delete(s.uploads, query.Get("uploadId"))
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodGet && query.Has("uploads"):
		fmt.Fprint(w, xml.Header+"<ListMultipartUploadsResult>")
		for _, id := range slices.Sorted(maps.Keys(s.uploads)) {
			if of := s.of[id]; strings.HasPrefix(of, strings.Trim(key, "/")+"/"+query.Get("prefix")) {
				fmt.Fprintf(w, "<Upload><Key>%s</Key><UploadId>%s</UploadId></Upload>", strings.TrimPrefix(of, "backups/"), id)
			}
		}
		fmt.Fprint(w, "</ListMultipartUploadsResult>")
	case r.Method == http.MethodGet && s.objects[key] != nil:
		_, _ = w.Write(s.objects[key])
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func startParts(t *testing.T) (*parts, string) {
	t.Helper()
	s := &parts{objects: map[string][]byte{}, uploads: map[string]map[string][]byte{}, of: map[string]string{}, fails: func(*http.Request) int { return 0 }}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL
}

var keysOfBucket = map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "hunter2"}

func TestAllPropertiesGoToABucketAndOneComesBack(t *testing.T) {
	t.Parallel()
	from, to := redistest.URL(t), redistest.URL(t)
	client := dialled(t, from)
	fill(t, client.Stream("default", "shop"), 3000)
	fill(t, client.Stream("other", "blog"), 10)
	bucket, address := startParts(t)
	where := []string{"--s3-endpoint", address, "--s3-path-style", "--s3-region", "eu-central-1"}
	args := append([]string{"backup", "--redis-url", from, "--all", "--to", "s3://backups/weir"}, where...)
	if code, _, said := run(t, nil, keysOfBucket, args...); code != 0 || !strings.Contains(said, "default/shop as of") || !strings.Contains(said, "other/blog as of") {
		t.Fatalf("exit code %d: %s", code, said)
	}
	names := slices.Sorted(maps.Keys(bucket.objects))
	if len(names) != 2 || !strings.HasPrefix(names[0], "/backups/weir/default/shop/20") || !strings.HasSuffix(names[0], "Z.weir") {
		t.Fatalf("the bucket has %v", names)
	}
	args = append(append([]string{"restore", "--redis-url", to, "--property", "default/shop"}, where...), "s3:/"+names[0])
	if code, _, said := run(t, nil, keysOfBucket, args...); code != 0 {
		t.Fatalf("exit code %d: %s", code, said)
	}
	if n := length(t, to, "shop"); n != 3000 {
		t.Errorf("%d events are there", n)
	}
	if bucket.unsure > 0 || len(bucket.uploads) > 0 {
		t.Errorf("%d requests were not signed, %d uploads are left", bucket.unsure, len(bucket.uploads))
	}
}

func TestOfABackupThatABucketRefusesNoPartsAreLeft(t *testing.T) {
	t.Parallel()
	from := redistest.URL(t)
	fill(t, dialled(t, from).Stream("default", "shop"), 10)
	tests := map[string]struct {
		// fails says with what a request is answered; n counts them.
		fails func(r *http.Request, n int) int
		code  int
		want  string
		// left is how many uploads, objects how many objects are there.
		left, objects int
	}{
		"a bucket that takes nothing": {func(*http.Request, int) int { return 403 }, 1, "the bucket's server has answered 403 Refused", 0, 0},
		"a bucket that takes no part": {func(r *http.Request, _ int) int {
			return map[bool]int{true: 403}[r.Method == http.MethodPut]
		}, 1, "403 Refused", 0, 0},
		"a bucket that does not finish": {func(r *http.Request, _ int) int {
			return map[bool]int{true: 403}[r.Method == http.MethodPost && r.URL.Query().Has("uploadId")]
		}, 1, "403 Refused", 0, 0},
		"a bucket that takes nothing back": {func(r *http.Request, _ int) int {
			return map[bool]int{true: 403}[r.Method == http.MethodPut || r.Method == http.MethodDelete]
		}, 1, "parts of the backup are left in the bucket", 1, 0},
		"a bucket that is away for a moment": {func(_ *http.Request, n int) int { return map[bool]int{true: 503}[n%2 == 0] }, 0, "backed up", 0, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bucket, address := startParts(t)
			n := -1
			bucket.fails = func(r *http.Request) int { n++; return tt.fails(r, n) }
			code, _, said := run(t, nil, keysOfBucket, "backup", "--redis-url", from, "--property", "default/shop", "--to", "s3://backups", "--s3-endpoint", address, "--s3-path-style")
			if code != tt.code || !strings.Contains(said, tt.want) || strings.Contains(said, "hunter2") || strings.Contains(said, "Signature") {
				t.Errorf("exit code %d, %q; want %d and %q", code, said, tt.code, tt.want)
			}
			if len(bucket.uploads) != tt.left || len(bucket.objects) != tt.objects {
				t.Errorf("%d uploads and %d objects are there, want %d and %d", len(bucket.uploads), len(bucket.objects), tt.left, tt.objects)
			}
		})
	}
}

func TestWhatAKilledBackupHasLeftIsTakenBack(t *testing.T) {
	t.Parallel()
	from := redistest.URL(t)
	fill(t, dialled(t, from).Stream("default", "shop"), 10)
	const earlier = "2026-01-31T03-17-00Z.weir"
	tests := map[string]struct {
		// of is what the upload that was left is of, fails what is refused.
		of    string
		fails func(r *http.Request) bool
		left  int
		want  string
	}{
		"of the same Property":    {of: "backups/weir/default/shop/" + earlier, left: 0},
		"which may be alive":      {of: "backups/weir/default/shop/" + time.Now().UTC().Add(-23*time.Hour).Format(nameLayout), left: 1},
		"of somebody else":        {of: "backups/weir/default/shop/2020.weir", left: 1},
		"of another one":          {of: "backups/weir/default/shop2/" + earlier, left: 1},
		"of another place":        {of: "backups/default/shop/" + earlier, left: 1},
		"where it may not look":   {"backups/weir/default/shop/" + earlier, func(r *http.Request) bool { return r.Method == http.MethodGet }, 1, "a killed backup has left stay in the bucket: the bucket's server has answered 403 Refused"},
		"where it may not remove": {"backups/weir/default/shop/" + earlier, func(r *http.Request) bool { return r.Method == http.MethodDelete }, 1, "a killed backup has left stay in the bucket: the bucket's server has answered 403 Refused"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bucket, address := startParts(t)
			bucket.uploads["left"], bucket.of["left"] = map[string][]byte{"1": []byte("half")}, tt.of
			bucket.fails = func(r *http.Request) int {
				return map[bool]int{true: http.StatusForbidden}[tt.fails != nil && tt.fails(r)]
			}
			code, _, said := run(t, nil, keysOfBucket, "backup", "--redis-url", from, "--property", "default/shop", "--to", "s3://backups/weir", "--s3-endpoint", address, "--s3-path-style")
			if code != 0 || !strings.Contains(said, tt.want) || strings.Contains(said, "stay in the bucket") != (tt.want != "") {
				t.Errorf("exit code %d, %q; want %q", code, said, tt.want)
			}
			if len(bucket.uploads) != tt.left || len(bucket.objects) != 1 {
				t.Errorf("%d uploads and %d objects are there, want %d and 1", len(bucket.uploads), len(bucket.objects), tt.left)
			}
		})
	}
}
