package iab

// Answer is what a field of a section of the United States says. Its numbers are those of the specifications, which have other
// words for other fields. Of a choice of the user 1 is always the one that forbids.
type Answer int

// The answers.
const (
	// NotApplicable is the answer where the question does not arise, or was not asked.
	NotApplicable Answer = 0

	// Yes and No are those of notices and agreements.
	Yes Answer = 1
	No  Answer = 2

	// OptedOut and DidNotOptOut are those of opt-outs.
	OptedOut     Answer = 1
	DidNotOptOut Answer = 2

	// NoConsent and ConsentGiven are those of consent.
	NoConsent    Answer = 1
	ConsentGiven Answer = 2
)

// USSection is a section of the United States: the national one or a state's. Each has some of the fields; those that it lacks
// are [NotApplicable], and empty lists.
type USSection struct {
	// ID is 7 for the national section, 8 California, 9 Virginia, 10 Colorado, 11 Utah, 12 Connecticut, 13 Florida, 14 Montana,
	// 15 Oregon, 16 Texas, 17 Delaware, 18 Iowa, 19 Nebraska, 20 New Hampshire, 21 New Jersey, 22 Tennessee, 23 Minnesota,
	// 24 Maryland, 25 Indiana, 26 Kentucky, 27 Rhode Island.
	ID int
	// Version is that of the section's layout: 1 or, for the national section, 1 or 2.
	Version int

	// SharingNotice and ProcessingNotice say whether the user was told that data is shared, or processed: [Yes] or [No].
	SharingNotice, ProcessingNotice Answer
	// SaleOptOutNotice and the others ending so say whether the user was told of the right to opt out: [Yes] or [No].
	SaleOptOutNotice, SharingOptOutNotice, TargetedAdvertisingOptOutNotice, SensitiveDataProcessingOptOutNotice Answer
	// SensitiveDataLimitUseNotice says whether the user was told of the right to limit the use of sensitive data.
	SensitiveDataLimitUseNotice Answer

	// SaleOptOut says whether the user opted out of the sale of their data: [OptedOut] or [DidNotOptOut].
	SaleOptOut Answer
	// SharingOptOut says that of sharing it for advertising across contexts, which California and the national section have.
	SharingOptOut Answer
	// TargetedAdvertisingOptOut says that of targeted advertising.
	TargetedAdvertisingOptOut Answer

	// SensitiveDataProcessing has an answer for each kind of sensitive data in the section's specification. In California, Utah
	// and Iowa they are opt-outs, elsewhere consents; 1 is in both the one that forbids.
	SensitiveDataProcessing []Answer
	// KnownChildSensitiveDataConsents has an answer for each age group of children: [NoConsent] or [ConsentGiven].
	KnownChildSensitiveDataConsents []Answer
	// PersonalDataConsents and AdditionalDataProcessingConsent say whether the user consented to uses that go beyond those that
	// were disclosed: [NoConsent] or [ConsentGiven].
	PersonalDataConsents, AdditionalDataProcessingConsent Answer

	// MspaVersion is that of the Multi-State Privacy Agreement; 0 for sections that do not say it.
	MspaVersion int
	// MspaCoveredTransaction says whether the publisher declares that the agreement covers this: [Yes] or [No].
	MspaCoveredTransaction Answer
	// MspaOptOutOptionMode and MspaServiceProviderMode say in which of the agreement's modes: [Yes] or [No]. Sections that have
	// one field for both, from Maryland on, are read as these.
	MspaOptOutOptionMode, MspaServiceProviderMode Answer

	// GPC says that the browser sent Global Privacy Control, an opt-out of sale and sharing. It is false where the section does
	// not say.
	GPC bool
}
