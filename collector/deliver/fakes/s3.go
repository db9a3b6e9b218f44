package fakes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/parquet-go/parquet-go"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

// s3Skew is how far a request's time may be off.
const s3Skew = 15 * time.Minute

// s3Page is how many keys a page of a listing has.
const s3Page = 1000

// object is what a bucket has under a key.
type object struct {
	data     []byte
	etag     string
	metadata map[string]string
}

// bucket is what a fake S3 has, by bucket and key.
type bucket struct {
	mu      sync.Mutex
	objects map[string]object
}

// Objects returns what a fake S3 has, by "BUCKET/KEY".
func (s *Server) Objects() map[string][]byte {
	s.objects.mu.Lock()
	defer s.objects.mu.Unlock()
	all := map[string][]byte{}
	for key, o := range s.objects.objects {
		all[key] = o.data
	}
	return all
}

// Delete deletes an object of a fake S3, by "BUCKET/KEY", as its owner may.
func (s *Server) Delete(key string) {
	s.objects.mu.Lock()
	defer s.objects.mu.Unlock()
	delete(s.objects.objects, key)
}

// Put has an object in a fake S3 that nobody has asked to write, by "BUCKET/KEY". It has no metadata, as copies may have none.
func (s *Server) Put(key string, data []byte) {
	s.objects.mu.Lock()
	defer s.objects.mu.Unlock()
	sum := sha256.Sum256(data)
	s.objects.objects[key] = object{data: data, etag: `"` + hex.EncodeToString(sum[:]) + `"`}
}

func s3Error(status int, code, message string) answer {
	return answer{
		status: status, contentType: "application/xml",
		body: xml.Header + "<Error><Code>" + code + "</Code><Message>" + message + "</Message><RequestId>4442587FB7D0A2F9</RequestId></Error>",
	}
}

// failS3 words failures as S3 does.
func failS3(status int) answer {
	switch status {
	case http.StatusBadRequest:
		return s3Error(status, "InvalidRequest", "Invalid Request")
	case http.StatusUnauthorized:
		return s3Error(status, "InvalidToken", "The provided token is malformed or otherwise not valid.")
	case http.StatusForbidden:
		return s3Error(status, "AccessDenied", "Access Denied")
	case http.StatusNotFound:
		return s3Error(status, "NoSuchBucket", "The specified bucket does not exist")
	case http.StatusConflict:
		return s3Error(status, "ConditionalRequestConflict", "The conditional request cannot succeed due to a conflicting operation.")
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return s3Error(status, "SlowDown", "Please reduce your request rate.")
	case http.StatusInternalServerError:
		return s3Error(status, "InternalError", "We encountered an internal error. Please try again.")
	}
	return answer{status: status}
}

// judgeS3 knows the few calls that are made: objects are written whole and under a condition, read, looked at and listed.
func judgeS3(q *request) answer {
	name, key, _ := strings.Cut(strings.TrimPrefix(q.URL.Path, "/"), "/")
	if refusal, complaint := q.s3Signature(); complaint != "" {
		return refusal.complain("%s", complaint)
	}
	account := q.account(func(p platforms.Platform) bool { return p.S3 != nil && p.S3.Bucket == name })
	if account == nil {
		return failS3(http.StatusNotFound).complain("no bucket of that name")
	}
	unknown := slices.DeleteFunc(slices.Collect(maps.Keys(q.URL.Query())), func(p string) bool {
		return slices.Contains([]string{"x-id", "list-type", "prefix", "continuation-token", "max-keys", "start-after"}, p)
	})
	q.objects.mu.Lock()
	defer q.objects.mu.Unlock()
	switch {
	case len(unknown) > 0:
		return s3Error(http.StatusNotImplemented, "NotImplemented", "A header you provided implies functionality that is not implemented.").
			complain("a parameter that this server does not know")
	case q.Method == http.MethodGet && key == "":
		return q.s3List(name)
	case key == "" || strings.HasPrefix(key, "/"):
		return s3Error(http.StatusMethodNotAllowed, "MethodNotAllowed", "The specified method is not allowed against this resource.").complain("no object is named")
	case q.Method == http.MethodPut:
		return q.s3Put(name + "/" + key)
	case q.Method == http.MethodGet, q.Method == http.MethodHead:
		return q.s3Get(name + "/" + key)
	}
	return s3Error(http.StatusMethodNotAllowed, "MethodNotAllowed", "The specified method is not allowed against this resource.").complain("no such method")
}

var s3Authorization = regexp.MustCompile(
	`^AWS4-HMAC-SHA256 Credential=([^/,]+)/([0-9]{8})/([^/,]+)/s3/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$`)

// s3Signature checks a request's signature: it is made once more, by AWS's own library and of the headers that it covers, and has
// to be the same.
func (q *request) s3Signature() (refusal answer, complaint string) {
	parts := s3Authorization.FindStringSubmatch(q.Header.Get("Authorization"))
	if parts == nil {
		return failS3(http.StatusForbidden), "the request is not signed"
	}
	key, day, region, covered, signature := parts[1], parts[2], parts[3], strings.Split(parts[4], ";"), parts[5]
	account := q.account(func(platforms.Platform) bool { return true })
	for i := range q.accounts {
		if q.accounts[i].Credentials["accessKeyID"] == key {
			account = &q.accounts[i]
		}
	}
	q.platform = ""
	at, err := time.Parse("20060102T150405Z", q.Header.Get("X-Amz-Date"))
	sum := sha256.Sum256(q.body)
	claimed := q.Header.Get("X-Amz-Content-Sha256")
	switch {
	case account == nil || account.Credentials["accessKeyID"] != key:
		return s3Error(http.StatusForbidden, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records."), "the access key is unknown"
	case err != nil || at.Format("20060102") != day:
		return failS3(http.StatusForbidden), "the date is not that of the signature"
	case q.now.Sub(at).Abs() > s3Skew:
		return s3Error(http.StatusForbidden, "RequestTimeTooSkewed", "The difference between the request time and the server's time is too large."), "the clock is wrong"
	case region != account.Platform.S3.Region:
		return s3Error(http.StatusBadRequest, "AuthorizationHeaderMalformed", "The authorization header is malformed; the region is wrong."), "the region is another"
	case claimed != hex.EncodeToString(sum[:]):
		return s3Error(http.StatusBadRequest, "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed."), "the body is not what was signed"
	}
	again := &http.Request{Method: q.Method, URL: q.URL, Host: q.Host, Header: http.Header{}, ContentLength: 0}
	for _, name := range covered {
		switch name {
		case "host":
		case "content-length":
			again.ContentLength = q.ContentLength
		default:
			again.Header[http.CanonicalHeaderKey(name)] = q.Header.Values(name)
		}
	}
	for name := range q.Header {
		lower := strings.ToLower(name)
		if strings.HasPrefix(lower, "x-amz-") && !slices.Contains(covered, lower) {
			return failS3(http.StatusForbidden), "there were headers which were not signed"
		}
	}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	credentials := aws.Credentials{AccessKeyID: key, SecretAccessKey: account.Credentials["secretAccessKey"]}
	again.URL.Host = q.Host
	if err := signer.SignHTTP(context.Background(), credentials, again, claimed, "s3", region, at); err != nil || !strings.HasSuffix(again.Header.Get("Authorization"), "Signature="+signature) {
		return s3Error(http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided."), "the signature is wrong"
	}
	return answer{}, ""
}

type s3Listing struct {
	XMLName     xml.Name `xml:"ListBucketResult"`
	Name        string
	Prefix      string
	KeyCount    int
	MaxKeys     int
	IsTruncated bool
	Contents    []s3Listed
	Next        string `xml:"NextContinuationToken,omitempty"`
}

type s3Listed struct {
	Key  string
	ETag string
	Size int
}

// s3List lists the keys of a bucket in order, a page at a time.
func (q *request) s3List(name string) answer {
	query := q.URL.Query()
	if query.Get("list-type") != "2" {
		return s3Error(http.StatusNotImplemented, "NotImplemented", "Only ListObjectsV2 is implemented.").complain("a listing is asked for in its first version")
	}
	listing := s3Listing{Name: name, Prefix: query.Get("prefix"), MaxKeys: s3Page}
	after := max(query.Get("start-after"), query.Get("continuation-token"))
	for _, path := range slices.Sorted(maps.Keys(q.objects.objects)) {
		key, ours := strings.CutPrefix(path, name+"/")
		if !ours || !strings.HasPrefix(key, listing.Prefix) || key <= after {
			continue
		}
		if listing.KeyCount == s3Page {
			listing.IsTruncated, listing.Next = true, listing.Contents[s3Page-1].Key
			break
		}
		o := q.objects.objects[path]
		listing.KeyCount++
		listing.Contents = append(listing.Contents, s3Listed{key, o.etag, len(o.data)})
	}
	text, err := xml.Marshal(listing)
	if err != nil {
		return failS3(http.StatusInternalServerError).complain("%v", err)
	}
	return answer{status: http.StatusOK, contentType: "application/xml", body: xml.Header + string(text)}
}

// s3Put writes an object, whole or not at all.
func (q *request) s3Put(path string) answer {
	old, there := q.objects.objects[path]
	ifNone, ifMatch := q.Header.Get("If-None-Match"), q.Header.Get("If-Match")
	switch {
	case q.ContentLength < 0:
		return s3Error(http.StatusLengthRequired, "MissingContentLength", "You must provide the Content-Length HTTP header.").complain("no Content-Length")
	case ifNone != "" && ifNone != "*", ifNone != "" && ifMatch != "":
		return s3Error(http.StatusNotImplemented, "NotImplemented", "A header you provided implies functionality that is not implemented.").complain("a condition that S3 has not")
	case ifNone == "" && ifMatch == "":
		return failS3(http.StatusBadRequest).complain("a write without a condition would write over what another has written")
	case ifMatch != "" && !there:
		return s3Error(http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
	case ifNone == "*" && there, ifMatch != "" && ifMatch != old.etag:
		return s3Error(http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
	}
	o := object{data: slices.Clone(q.body), metadata: map[string]string{}}
	sum := sha256.Sum256(q.body) // S3 has another digest, and nobody may rest on which
	o.etag = `"` + hex.EncodeToString(sum[:]) + `"`
	for name := range q.Header {
		if meta, is := strings.CutPrefix(strings.ToLower(name), "x-amz-meta-"); is {
			o.metadata[meta] = q.Header.Get(name)
		}
	}
	given := answer{status: http.StatusOK, header: map[string]string{"ETag": o.etag}}
	if strings.HasSuffix(path, ".parquet") {
		events, err := q.rowsOf(q.body)
		if err != nil {
			return failS3(http.StatusBadRequest).complain("what is called .parquet is none")
		}
		had, err := q.rowsOf(old.data)
		if err != nil {
			return failS3(http.StatusInternalServerError).complain("%v", err)
		}
		given.events = slices.DeleteFunc(events, func(e Event) bool {
			return slices.ContainsFunc(had, func(other Event) bool { return other.ID == e.ID })
		})
		for _, e := range given.events {
			if e.Refusal != "" {
				return failS3(http.StatusBadRequest).complain("%s", e.Refusal)
			}
		}
	}
	q.objects.objects[path] = o
	return given
}

// parquetRow is what the fake reads of a row.
type parquetRow struct {
	Event       string   `parquet:"event"`
	EventID     string   `parquet:"event_id"`
	Value       *int64   `parquet:"value,optional,decimal(4:15)"`
	Currency    string   `parquet:"currency,optional"`
	EmailSHA256 []string `parquet:"email_sha256,list"`
	PhoneSHA256 []string `parquet:"phone_sha256,list"`
}

// rowsOf returns a file's rows as events, none of what is no file.
func (q *request) rowsOf(data []byte) ([]Event, error) {
	if len(data) == 0 {
		return nil, nil
	}
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	reader := parquet.NewGenericReader[parquetRow](file)
	defer reader.Close()
	rows := make([]parquetRow, file.NumRows())
	if _, err := reader.Read(rows); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	events := make([]Event, len(rows))
	for i := range rows {
		e := Event{Name: strings.Clone(rows[i].Event), ID: strings.Clone(rows[i].EventID), Currency: strings.Clone(rows[i].Currency)}
		if rows[i].Value != nil {
			e.Value = event.Amount(*rows[i].Value).String()
		}
		for _, list := range []struct {
			name   string
			hashes []string
		}{{"email_sha256", rows[i].EmailSHA256}, {"phone_sha256", rows[i].PhoneSHA256}} {
			for _, hash := range list.hashes {
				q.checkHashes(&e, list.name, strings.Clone(hash))
			}
		}
		events[i] = e
	}
	return events, nil
}

var s3Range = regexp.MustCompile(`^bytes=([0-9]+)-([0-9]+)$`)

// s3Get answers with an object, a part of it, or what there is to say of it.
func (q *request) s3Get(path string) answer {
	o, there := q.objects.objects[path]
	if !there {
		return s3Error(http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
	}
	if match := q.Header.Get("If-Match"); match != "" && match != o.etag {
		return s3Error(http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
	}
	given := answer{status: http.StatusOK, contentType: "application/vnd.apache.parquet", header: map[string]string{"ETag": o.etag}}
	for name, value := range o.metadata {
		given.header["X-Amz-Meta-"+name] = value
	}
	data := o.data
	if part := q.Header.Get("Range"); part != "" {
		bounds := s3Range.FindStringSubmatch(part)
		if bounds == nil {
			return failS3(http.StatusBadRequest).complain("a range that S3 does not read")
		}
		from, _ := strconv.Atoi(bounds[1]) // digits
		to, _ := strconv.Atoi(bounds[2])
		if from >= len(data) || to < from {
			return s3Error(http.StatusRequestedRangeNotSatisfiable, "InvalidRange", "The requested range is not satisfiable")
		}
		data, given.status = data[from:min(to+1, len(data))], http.StatusPartialContent
	}
	given.header["Content-Length"] = strconv.Itoa(len(data))
	if q.Method != http.MethodHead {
		given.body = string(data)
	}
	return given
}
