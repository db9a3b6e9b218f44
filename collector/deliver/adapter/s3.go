package adapter

import (
	"time"

	"github.com/weir-dev/weir/collector/deliver/lake"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// s3Adapter knows a bucket, whose files are written by the deliverer's lake writer and not by requests: what is built here are
// the rows as JSON, which show what a file has of an event.
type s3Adapter struct{ bucket lake.BucketOptions }

func openS3(cfg platforms.Platform, credentials map[string]string) (Adapter, error) {
	bucket := lake.BucketOptions{
		Bucket: cfg.S3.Bucket, Region: cfg.S3.Region, Endpoint: cfg.S3.Endpoint, PathStyle: cfg.S3.PathStyle,
		AccessKeyID: credentials["accessKeyID"], SecretAccessKey: credentials["secretAccessKey"],
	}
	if cfg.Endpoint != "" {
		bucket.Endpoint, bucket.PathStyle = cfg.Endpoint, true
	}
	return &s3Adapter{bucket}, nil
}

// Bucket returns which bucket the platform's events are put into, and how it is reached; false for a platform that gets them by
// requests.
func (p *Platform) Bucket() (lake.BucketOptions, bool) {
	a, ok := p.Adapter.(*s3Adapter)
	if !ok {
		return lake.BucketOptions{}, false
	}
	return a.bucket, true
}

// Told returns an event as the platform is told of it. The verdict is final where it is not.
func (p *Platform) Told(e *Event) (event.Event, Verdict) {
	told, verdict := p.told(e)
	return told.Event, verdict
}

func (a *s3Adapter) Map(e *Event) (Payload, Verdict) {
	row, err := lake.RowOf(&e.Event, stream.At(e.ReceivedAt), "", true)
	if err != nil {
		return Payload{}, Verdict{Class: Permanent, Reason: "unrenderable"}
	}
	row.Visitor, row.Position = "", 0 // which the event alone does not tell
	body, err := row.JSON()
	if err != nil {
		return Payload{}, Verdict{Class: Permanent, Reason: "unrenderable"}
	}
	return Payload{Body: body}, Verdict{}
}

func (a *s3Adapter) Build(batch []Payload, _ time.Time) Request {
	return Request{Body: joinBodies("[", batch, []byte("]"))}
}

// Classify reads an answer by its status. The lake writer's own answers are judged where they are had.
func (a *s3Adapter) Classify(response Response, n int) []Verdict {
	return forAll(n, classifyStatus(response, n))
}
