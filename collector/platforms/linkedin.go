package platforms

import "time"

// TypeLinkedIn is LinkedIn's Conversions API. It needs no settings: its token knows the ad account, and which conversion rule an
// event is for is said by [Platform.EventNames].
const TypeLinkedIn Type = "LinkedIn"

var linkedinTraits = Traits{
	Credentials: []string{"accessToken"},
	Hashes:      []Hash{EmailLower, FirstNameMeta, LastNameMeta},
	// LinkedIn has a version a month, and takes each for a year.
	APIVersion:        "202609",
	APIVersionEnds:    day(2027, time.September, 15),
	APIVersionPattern: "^20[0-9]{2}(0[1-9]|1[0-2])$",
	Proof: Proof{Judges: []Judge{
		{Kind: ByFake, What: "a server that checks by the rules of LinkedIn's Conversions API schema", Since: "2026-11-24"},
		{Kind: ByLibrary, What: "Segment's destination `linkedin-conversions`, 3.497", Since: "2026-11-24"},
	}},
	// LinkedIn takes 5,000, and refuses all of them for one.
	Limits: Limits{Events: 100, Bytes: 1 << 20},
	MaxAge: 90 * 24 * time.Hour,
	// LinkedIn has no milder form for anything, so what is denied withholds the event.
	Consent: Consent{
		Requires:    []Purpose{AdStorage, AdUserData, AdPersonalization, Sale},
		TCF:         TCF{Vendor: 804, LegitimateInterest: []int{7}, Flexible: []int{7}},
		Identifiers: Identifiers{ClientID: true, UserID: true},
	},
	HasEndpoint: true,
	TestMode:    without("LinkedIn"),
	Erasure: Erasure{
		Instruction: "LinkedIn documents no interface for it, and says that it erases conversions after 180 days, but for what is " +
			"counted. Ask LinkedIn's support for advertisers, naming the ad account and the SHA-256 of the person's e-mail " +
			"address; the person may also ask LinkedIn directly.",
		URL: "https://www.linkedin.com/help/lms",
	},
}
