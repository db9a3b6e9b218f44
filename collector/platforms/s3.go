package platforms

// TypeS3 is a bucket of the owner's, in Parquet files.
const TypeS3 Type = "S3"

// S3 configures a bucket of the owner's, in Parquet files.
type S3 struct {
	// The bucket.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$')",message="must be the name of a bucket"
	Bucket string `json:"bucket"`
}

var s3Traits = Traits{
	Credentials: []string{"accessKeyID", "secretAccessKey"},
	Limits:      Limits{Events: 1000},
	Consent:     advertising,
	HasEndpoint: true,
	Texts: []Text{
		{
			Name: "bucket", MaxLength: 63, Pattern: "^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", Rule: "must be the name of a bucket",
			of: func(s *Settings) string { return s.S3.Bucket },
		},
	},
	isSet: func(s *Settings) bool { return s.S3 != nil },
}
