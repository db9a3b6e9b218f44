package backup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const (
	bucketScheme = "s3://"
	// partBytes is how large a part of an object is that is written: of 10,000 parts, which is the most, 160 GB.
	partBytes = 16 << 20
	// tries is how often a request is made that gets no answer, or one that says to try again.
	tries = 6
	// abortTimeout is how long taking back what was written may take.
	abortTimeout = 30 * time.Second
	// partsKept is for how long parts of an upload are left to whoever may be at it still: another cluster may write to the same place.
	partsKept = 24 * time.Hour
	// nameLayout is when a backup was begun, in the name of its object.
	nameLayout = "2006-01-02T15-04-05Z.weir"
)

// isBucket says whether a place is in a bucket.
func isBucket(place string) bool { return strings.HasPrefix(place, bucketScheme) }

// bucketFlags say which server it is. The keys are in the environment, as other programs have them.
type bucketFlags struct {
	region, endpoint string
	pathStyle        bool
	patience         patience
}

func (b *bucketFlags) add(set *flag.FlagSet) {
	b.patience = usual
	set.StringVar(&b.region, "s3-region", "us-east-1", "the bucket's `REGION`; the keys are AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN")
	set.StringVar(&b.endpoint, "s3-endpoint", "", "`URL` of a server other than AWS's")
	set.BoolVar(&b.pathStyle, "s3-path-style", false, "the bucket is in the URL's path and not in its host")
}

func (b *bucketFlags) check(place string) (problems []string) {
	if bucket, _, _ := strings.Cut(strings.TrimPrefix(place, bucketScheme), "/"); bucket == "" {
		problems = append(problems, "s3://: must name a bucket")
	}
	if b.endpoint != "" {
		if parsed, err := url.Parse(b.endpoint); err != nil || parsed.Host == "" || parsed.User != nil || parsed.Scheme != "https" && parsed.Scheme != "http" {
			problems = append(problems, "--s3-endpoint: must be a URL such as https://minio.example.com:9000")
		}
	}
	return problems
}

// client makes a client for a place, and returns the bucket and the key.
func (b *bucketFlags) client(place string, getenv func(string) string) (client *s3.Client, bucket, key string, err error) {
	id, secret := getenv("AWS_ACCESS_KEY_ID"), getenv("AWS_SECRET_ACCESS_KEY")
	if id == "" || secret == "" {
		return nil, "", "", errors.New("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are needed in the environment")
	}
	options := s3.Options{
		Region: b.region, UsePathStyle: b.pathStyle,
		HTTPClient: b.patience.client(b.patience.answer),
		Credentials: credentials.NewStaticCredentialsProvider(
			id, secret, getenv("AWS_SESSION_TOKEN")),
		RetryMaxAttempts: tries,
		// Signatures cover the SHA-256 of what is sent; servers other than AWS's refuse the trailers that newer checksums take.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}
	if b.endpoint != "" {
		options.BaseEndpoint = aws.String(b.endpoint)
	}
	bucket, key, _ = strings.Cut(strings.TrimPrefix(place, bucketScheme), "/")
	return s3.New(options), bucket, key, nil
}

// open reads an object.
func (b *bucketFlags) open(ctx context.Context, place string, getenv func(string) string) (io.ReadCloser, error) {
	client, bucket, key, err := b.client(place, getenv)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	giveUp := func() { cancel(errSilent) }
	timer := time.AfterFunc(b.patience.call, giveUp)
	got, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	timer.Stop()
	if err != nil {
		err = refusal(ctx, err)
		giveUp()
		return nil, err
	}
	return &pacedBody{ReadCloser: got.Body, stall: b.patience.stall, giveUp: giveUp, now: time.Now}, nil
}

// target returns where a Property's backup is written to, which is named for when it was begun.
func (b *bucketFlags) target(place, property string, began time.Time, getenv func(string) string, said func(error)) (*object, error) {
	client, bucket, prefix, err := b.client(place, getenv)
	if err != nil {
		return nil, err
	}
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	folder := prefix + property + "/"
	return &object{
		client: client, bucket: bucket, folder: folder, key: folder + began.UTC().Format(nameLayout), patience: b.patience, began: began, said: said,
	}, nil
}

// object is an object that is written in parts. It is there once it is whole.
type object struct {
	client              *s3.Client
	bucket, folder, key string
	patience            patience
	// began is when the backup was.
	began time.Time
	// said is told what keeps parts in the bucket that a killed backup has left.
	said func(error)

	ctx    context.Context //nolint:containedctx // that of begin, for a Writer's calls
	upload *string
	parts  []types.CompletedPart
	buffer bytes.Buffer
}

func (o *object) begin(ctx context.Context) (io.Writer, error) {
	if err := o.discard(ctx); err != nil {
		return nil, err
	}
	o.ctx = ctx
	return o, nil
}

// start begins the upload, with the first part.
func (o *object) start(ctx context.Context) error {
	ctx, done := within(ctx, o.patience.call)
	defer done()
	if err := o.sweep(ctx); errors.Is(err, errSilent) {
		return err
	} else if err != nil {
		o.said(fmt.Errorf("parts that a killed backup has left stay in the bucket: %w", err))
	}
	begun, err := o.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: &o.bucket, Key: &o.key, ContentType: aws.String("application/octet-stream"),
	})
	if err != nil {
		return refusal(ctx, err)
	}
	o.upload = begun.UploadId
	return nil
}

// sweep takes back what killed backups of the same property have left a day ago or earlier. It cannot be gone on with: a bucket hands
// out no part before all are one object, and what a part ends with has to be known to write the next.
func (o *object) sweep(ctx context.Context) error {
	pages := s3.NewListMultipartUploadsPaginator(o.client, &s3.ListMultipartUploadsInput{Bucket: &o.bucket, Prefix: &o.folder})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return refusal(ctx, err)
		}
		for i := range page.Uploads {
			left := &page.Uploads[i]
			began, err := time.Parse(nameLayout, strings.TrimPrefix(aws.ToString(left.Key), o.folder))
			if err != nil || o.began.Sub(began) < partsKept {
				continue // somebody else's, or perhaps not dead
			}
			if _, err := o.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &o.bucket, Key: left.Key, UploadId: left.UploadId}); err != nil {
				return refusal(ctx, err)
			}
		}
	}
	return nil
}

// Write sends a part where there is enough for one.
func (o *object) Write(p []byte) (int, error) {
	o.buffer.Write(p)
	if o.buffer.Len() >= partBytes {
		if err := o.send(o.ctx); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func (o *object) send(ctx context.Context) error {
	if o.upload == nil {
		if err := o.start(ctx); err != nil {
			return err
		}
	}
	ctx, done := within(ctx, o.patience.longCall)
	defer done()
	number := int32(len(o.parts) + 1)
	sent, err := o.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &o.bucket, Key: &o.key, UploadId: o.upload, PartNumber: &number, Body: bytes.NewReader(o.buffer.Bytes()),
	})
	if err != nil {
		return refusal(ctx, err)
	}
	o.parts = append(o.parts, types.CompletedPart{ETag: sent.ETag, PartNumber: &number})
	o.buffer.Reset()
	return nil
}

func (o *object) finish(ctx context.Context) error {
	if err := o.send(ctx); err != nil {
		return err
	}
	ctx, done := within(ctx, o.patience.longCall)
	defer done()
	// A server may copy all parts before it says a word, and knows of no upload any more when it is asked again.
	_, err := o.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &o.bucket, Key: &o.key, UploadId: o.upload, MultipartUpload: &types.CompletedMultipartUpload{Parts: o.parts},
	}, func(options *s3.Options) { options.HTTPClient = o.patience.client(o.patience.longCall) })
	if err != nil {
		return refusal(ctx, err)
	}
	o.upload, o.parts = nil, nil
	return nil
}

// discard takes the parts back, which a bucket may keep, and be paid for, else.
func (o *object) discard(ctx context.Context) error {
	o.buffer.Reset()
	if o.upload == nil {
		return nil
	}
	ctx, done := within(ctx, abortTimeout)
	defer done()
	_, err := o.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &o.bucket, Key: &o.key, UploadId: o.upload})
	o.upload, o.parts = nil, nil
	if err != nil {
		return fmt.Errorf("parts of the backup are left in the bucket: %w", refusal(ctx, err))
	}
	return nil
}

// refusal makes an error of ours of one of the library's, which has more in it than people need.
func refusal(ctx context.Context, err error) error {
	if slow, is := errors.AsType[net.Error](err); is && slow.Timeout() || errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	response, answered := errors.AsType[*smithyhttp.ResponseError](err)
	if !answered || response.HTTPStatusCode() == 0 {
		return fmt.Errorf("the bucket's server cannot be reached: %w", err)
	}
	code := ""
	if api, worded := errors.AsType[smithy.APIError](err); worded {
		code = api.ErrorCode()
	}
	return fmt.Errorf("the bucket's server has answered %d %s", response.HTTPStatusCode(), cmp.Or(code, "without a reason"))
}
