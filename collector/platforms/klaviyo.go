package platforms

import "time"

// TypeKlaviyo is Klaviyo's Events API.
const TypeKlaviyo Type = "Klaviyo"

// Klaviyo configures Klaviyo's Events API. There is nothing to set: the key of the Secret says which account it is.
type Klaviyo struct {
}

var klaviyoTraits = Traits{
	Credentials: []string{"apiKey"},
	// Klaviyo supports a revision for a year and takes it for one more.
	APIVersion:        "2026-07-15",
	APIVersionEnds:    day(2028, time.July, 15),
	APIVersionPattern: `^[0-9]{4}-[0-9]{2}-[0-9]{2}(\.pre)?$`,
	Proof: Proof{Judges: []Judge{
		{Kind: ByFake, What: "a server that checks by the rules of Klaviyo's documents", Since: "2026-11-24"},
		{Kind: BySchema, What: "Klaviyo's OpenAPI description, revision 2026-07-15", Since: "2026-11-24"},
		{Kind: ByLibrary, What: "Segment's destination for Klaviyo, 3.497", Since: "2026-11-24"},
	}},
	// Klaviyo takes 1000 events and 5 MB; where it refuses so many without a word on which, each goes alone, and of those
	// it takes 3500 a minute.
	Limits:      Limits{Events: 500, Bytes: 4 << 20},
	HasEndpoint: true,
	// What it gets makes it write to people, by what they did. It has no milder form, and does it for its customer alone.
	Consent: Consent{
		Requires:    []Purpose{AdStorage, AdUserData, AdPersonalization},
		Identifiers: Identifiers{ClientID: true, UserID: true},
	},
	TestMode: without("Klaviyo"),
	Erasure: Erasure{
		Instruction: "Find the profile whose external_id is the user_id, by GET /api/profiles of Klaviyo's API with the filter " +
			`equals(external_id,"USER_ID"), and send its id to POST /api/data-privacy-deletion-jobs with the scope ` +
			"data-privacy:write, or delete it for privacy reasons in Klaviyo. There is no search for a client_id, which a " +
			"profile has as its anonymous_id: ask Klaviyo's support for one that has nothing else.",
		URL: "https://developers.klaviyo.com/en/reference/request_profile_deletion",
	},
	isSet: func(s *Settings) bool { return s.Klaviyo != nil },
}
