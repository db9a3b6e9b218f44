package platforms

import (
	"cmp"
	"time"
)

// TypeS3 is a bucket of the owner's, in Parquet files.
const TypeS3 Type = "S3"

// S3 configures a bucket of the owner's, on AWS or any server that speaks S3's API and honours If-None-Match and If-Match.
type S3 struct {
	// The bucket.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z][a-z0-9.-]+[a-z0-9]|[0-9][a-z0-9.-]*[a-z-][a-z0-9.-]*[a-z0-9]|[0-9][0-9.]+[a-z]|[0-9]{3,63})$')",message="must be the name of a bucket"
	Bucket string `json:"bucket"`

	// The region that the bucket is in, such as eu-central-1; of other servers than AWS's what they call so, often
	// us-east-1.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9][a-z0-9-]*$')",message="must be the name of a region, such as eu-central-1"
	Region string `json:"region"`

	// The server, where it is not AWS's. What is sent is not encrypted otherwise, so it is an https URL, or an http URL
	// of a Service of the cluster; its address is reached only where the operator allows it.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https://[A-Za-z0-9.-]+|http://[a-z0-9.-]+[.]svc([.]cluster[.]local)?)(:[0-9]+)?/?$')",message="must be an https URL without a path, or an http URL of a Service such as http://minio.storage.svc:9000"
	Endpoint string `json:"endpoint,omitempty"`

	// What the files' keys begin with, without a slash at its ends. The default is the Property's namespace and name and
	// the platform's name, NAMESPACE/NAME/PLATFORM.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^[.]?[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[.]?[A-Za-z0-9_-][A-Za-z0-9_.-]*)*$')",message="must be names with slashes between them, such as events/shop"
	Prefix string `json:"prefix,omitempty"`

	// Has the bucket in the path of URLs rather than in their host, as many servers want it that are not AWS's.
	// +optional
	PathStyle bool `json:"pathStyle,omitempty"`

	// After how many minutes at the latest an event is in a file. The default is 5.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1440
	FlushMinutes int `json:"flushMinutes,omitempty"`

	// How many rows a file has at most: one is written as soon as so many events wait. The default is 100000.
	// +optional
	// +kubebuilder:validation:Minimum=1000
	// +kubebuilder:validation:Maximum=1000000
	RowsPerFile int `json:"rowsPerFile,omitempty"`

	// Writes what tells whose an event is also where the Property keeps that for fewer days than the event
	// (retention.identifiersDays). Files keep it until their owner deletes them.
	// +optional
	KeepIdentifiers bool `json:"keepIdentifiers,omitempty"`
}

// FlushInterval is after how long an event is in a file.
func (s *S3) FlushInterval() time.Duration {
	return time.Duration(cmp.Or(s.FlushMinutes, 5)) * time.Minute
}

// MostRows is how many rows a file has at most.
func (s *S3) MostRows() int { return cmp.Or(s.RowsPerFile, 100_000) }

var s3Traits = Traits{
	Credentials: []string{"accessKeyID", "secretAccessKey"},
	Hashes:      []Hash{EmailLower, PhoneDigits},
	// Not of a request, but of what is taken up at a time of what was taken before.
	Limits:      Limits{Events: 1000},
	HasEndpoint: true,
	TestMode: TestMode{
		Sends: true,
		Text: "The bucket is asked for the names of objects below the prefix, which needs the credentials. Nothing is written. The " +
			"right to write shows with the first file.",
	},
	Erasure: Erasure{
		Instruction: "The person's rows are taken out of the files. What they were before that is yours: delete earlier " +
			"versions where the bucket keeps such, and the person in what you have loaded from the files.",
		URL: "https://docs.aws.amazon.com/AmazonS3/latest/userguide/DeletingObjectVersions.html",
	},
	Proof: Proof{Judges: []Judge{
		{Kind: ByFake, What: "a server that checks signatures and conditions by the rules of S3's documents", Since: "2026-11-24"},
		{Kind: ByLibrary, What: "DuckDB, which reads the files", Since: "2026-11-24"},
		{Kind: ByServer, What: "versitygw 1.8.0, a server that speaks S3's API", Since: "2026-11-24"},
	}},
	Texts: []Text{
		{
			Name: "bucket", MaxLength: 63, Pattern: "^([a-z][a-z0-9.-]+[a-z0-9]|[0-9][a-z0-9.-]*[a-z-][a-z0-9.-]*[a-z0-9]|[0-9][0-9.]+[a-z]|[0-9]{3,63})$", Rule: "must be the name of a bucket",
			of: func(s *Settings) string { return s.S3.Bucket },
		},
		{
			Name: "region", MaxLength: 32, Pattern: "^[a-z0-9][a-z0-9-]*$", Rule: "must be the name of a region, such as eu-central-1",
			of: func(s *Settings) string { return s.S3.Region },
		},
		{
			Name: "endpoint", MaxLength: 255, Optional: true,
			Pattern: "^(https://[A-Za-z0-9.-]+|http://[a-z0-9.-]+[.]svc([.]cluster[.]local)?)(:[0-9]+)?/?$",
			Rule:    "must be an https URL without a path, or an http URL of a Service such as http://minio.storage.svc:9000",
			of:      func(s *Settings) string { return s.S3.Endpoint },
		},
		{
			Name: "prefix", MaxLength: 255, Pattern: "^[.]?[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[.]?[A-Za-z0-9_-][A-Za-z0-9_.-]*)*$", Optional: true,
			Rule: "must be names with slashes between them, such as events/shop",
			of:   func(s *Settings) string { return s.S3.Prefix },
		},
	},
	isSet: func(s *Settings) bool { return s.S3 != nil },
}
