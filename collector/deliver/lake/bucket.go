package lake

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/weir-dev/weir/collector/stream"
)

// Errors of a bucket. All others are a [RefusedError], or say that there was no answer.
var (
	// ErrChanged says that an object is not what a write or a read expects it to be: it is there, or is another by now.
	ErrChanged = errors.New("the object is another by now")
	// ErrGone says that there is no object of that key.
	ErrGone = errors.New("there is no such object")
	// errConflict says that another request for the object is under way, so that it is not known yet what it will be.
	errConflict = fmt.Errorf("%w: another request for it is under way", ErrChanged)
	// ErrUnconditional says that the server writes over an object that it was told not to write over, so that nothing could keep
	// two writers apart.
	ErrUnconditional = errors.New("the server does not honour If-None-Match")
)

// RefusedError is an answer that refuses a request. It repeats nothing of that.
type RefusedError struct {
	Status int
	// Code is S3's, such as AccessDenied; "" where the answer has none.
	Code string
}

// Error has the status and the code.
func (e *RefusedError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the bucket's server has answered %d %s", e.Status, e.Code))
}

// BucketOptions say which bucket it is and how it is reached.
type BucketOptions struct {
	Bucket, Region string
	// Endpoint is the server's URL, "" for that of AWS in the region. PathStyle has the bucket in the URL's path in place of its
	// host.
	Endpoint  string
	PathStyle bool
	// SessionToken is "" for keys that last.
	AccessKeyID, SecretAccessKey, SessionToken string
	// Client makes the requests. It follows no redirect.
	Client *http.Client
	// Put is called before each write of an object; nil for nothing.
	Put func()
}

// Bucket is a bucket of an S3-compatible server. It is safe for concurrent use.
type Bucket struct {
	client *s3.Client
	name   string
	put    func()
}

// NewBucket makes one; nothing is asked yet.
func NewBucket(o BucketOptions) *Bucket {
	options := s3.Options{
		Region: o.Region, UsePathStyle: o.PathStyle, HTTPClient: o.Client,
		Credentials: credentials.NewStaticCredentialsProvider(o.AccessKeyID, o.SecretAccessKey, o.SessionToken),
		// Whoever calls tries again, and looks first at what is there.
		Retryer: aws.NopRetryer{},
		// Signatures cover the SHA-256 of what is sent; servers other than AWS's refuse the trailers that newer checksums take.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}
	if o.Endpoint != "" {
		options.BaseEndpoint = aws.String(o.Endpoint)
	}
	if o.Put == nil {
		o.Put = func() {}
	}
	return &Bucket{client: s3.New(options), name: o.Bucket, put: o.Put}
}

// Object is what a server says of a file.
type Object struct {
	ETag string
	Size int64
	// Last is the highest position that has been in the file: the next one of the day begins behind it.
	Last stream.Position
}

// lastOf is the name of [Object.Last] in the object's metadata and in the file's own.
const lastOf = "weir-last"

// List returns the keys that begin with a prefix, in order.
func (b *Bucket) List(ctx context.Context, prefix string) ([]string, error) {
	var keys []string
	pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, failure(err)
		}
		for i := range page.Contents {
			keys = append(keys, aws.ToString(page.Contents[i].Key))
		}
	}
	return keys, nil
}

// Head returns what the server says of a file. It fails with [ErrGone].
func (b *Bucket) Head(ctx context.Context, key string) (Object, error) {
	head, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.name, Key: &key})
	if err != nil {
		return Object{}, failure(err)
	}
	object := objectOf(head.Metadata, head.ETag, head.ContentLength)
	if object.Last == 0 { // a copy need not have the metadata
		parts := b.at(ctx, key, object)
		object.Last, err = lastIn(parts, object.Size)
		err = named(key, cmp.Or(parts.failed, err))
	}
	return object, err
}

// Get returns a file as a whole. It fails with [ErrGone].
func (b *Bucket) Get(ctx context.Context, key string) ([]byte, Object, error) {
	got, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: &key})
	if err != nil {
		return nil, Object{}, failure(err)
	}
	defer got.Body.Close()
	data, err := io.ReadAll(got.Body)
	if err != nil {
		return nil, Object{}, failure(err)
	}
	object := objectOf(got.Metadata, got.ETag, got.ContentLength)
	if object.Last == 0 {
		object.Last, err = lastIn(bytes.NewReader(data), int64(len(data)))
	}
	return data, object, named(key, err)
}

// objectOf has no [Object.Last] where the metadata has none.
func objectOf(metadata map[string]string, etag *string, size *int64) Object {
	last, _ := stream.ParsePosition(metadata[lastOf]) // what is none is looked for in the file
	return Object{ETag: aws.ToString(etag), Size: aws.ToInt64(size), Last: last}
}

// Create writes a file that must not be there. It fails with [ErrChanged] where it is.
func (b *Bucket) Create(ctx context.Context, key string, data []byte, last stream.Position) error {
	return b.write(ctx, &s3.PutObjectInput{Key: &key, IfNoneMatch: aws.String("*")}, data, last)
}

// Replace writes over a file as it was read. It fails with [ErrChanged] where it is another by now.
func (b *Bucket) Replace(ctx context.Context, key string, data []byte, as Object) error {
	return b.write(ctx, &s3.PutObjectInput{Key: &key, IfMatch: &as.ETag}, data, as.Last)
}

func (b *Bucket) write(ctx context.Context, in *s3.PutObjectInput, data []byte, last stream.Position) error {
	in.Bucket, in.Body, in.ContentLength = &b.name, bytes.NewReader(data), aws.Int64(int64(len(data)))
	in.ContentType = aws.String("application/vnd.apache.parquet")
	in.Metadata = map[string]string{lastOf: last.String()}
	b.put()
	if _, err := b.client.PutObject(ctx, in); err != nil {
		err = failure(err)
		if errors.Is(err, ErrGone) { // what is to be written over has been deleted
			return ErrChanged
		}
		return err
	}
	return nil
}

// Check makes sure that the server honours conditions of writes, by writing a small object below the prefix twice. It fails with
// [ErrUnconditional] where it does not.
func (b *Bucket) Check(ctx context.Context, prefix string) error {
	key := prefix + "_weir/conditional-writes"
	for range 2 {
		switch err := b.Create(ctx, key, []byte("Weir makes sure that this is not written over.\n"), 0); {
		case errors.Is(err, ErrChanged):
			return nil
		case err != nil:
			return err
		}
	}
	return ErrUnconditional
}

// parts reads parts of an object.
type parts struct {
	read func(p []byte, offset int64) (int, error)
	// failed is why the last one could not be read that could not.
	failed error
}

// ReadAt reads a part.
func (f *parts) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.read(p, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		f.failed = err
	}
	return n, err
}

// at reads parts of a file as it was when it was looked at. It fails with [ErrChanged].
func (b *Bucket) at(ctx context.Context, key string, as Object) *parts {
	return &parts{read: func(p []byte, offset int64) (int, error) {
		switch {
		case len(p) == 0:
			return 0, nil
		case offset < 0 || offset >= as.Size: // what is shorter than any file is asked for what lies before it
			return 0, io.EOF
		}
		got, err := b.client.GetObject(ctx, &s3.GetObjectInput{
			Bucket: &b.name, Key: &key, IfMatch: &as.ETag, Range: aws.String(fmt.Sprintf("bytes=%d-%d", offset, offset+int64(len(p))-1)),
		})
		if err != nil {
			return 0, failure(err)
		}
		defer got.Body.Close()
		n, err := io.ReadFull(got.Body, p)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF
		}
		return n, err
	}}
}

// failure makes an error of ours of one of the library's, which would show the address. That there was no answer stays what it
// is, for the deliverer to name.
func failure(err error) error {
	response, answered := errors.AsType[*smithyhttp.ResponseError](err)
	if !answered || response.HTTPStatusCode() == 0 {
		return err
	}
	refused := &RefusedError{Status: response.HTTPStatusCode()}
	if api, worded := errors.AsType[smithy.APIError](err); worded {
		refused.Code = api.ErrorCode()
	}
	switch {
	case refused.Status == http.StatusPreconditionFailed:
		return ErrChanged
	case refused.Status == http.StatusConflict && refused.Code == "ConditionalRequestConflict":
		return errConflict
	case refused.Status == http.StatusNotFound && refused.Code != "NoSuchBucket":
		return ErrGone
	case refused.Status >= 200 && refused.Status < 300:
		return err // what came of the answer breaks off, or is none of S3's
	}
	return refused
}
