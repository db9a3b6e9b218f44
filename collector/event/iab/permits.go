package iab

// Basis is a legal basis of the GDPR on which a vendor may process for a purpose.
type Basis int

// The bases that the framework knows.
const (
	// Consent is that the user agreed.
	Consent Basis = iota
	// LegitimateInterest is that the user was told and did not object.
	LegitimateInterest
)

// strictPolicy is the version of the framework's policies, that of TCF 2.2, from which on purposes 3 to 6 need consent.
const strictPolicy = 4

// disclosingPolicy is that of TCF 2.3, from which on a string says which vendors the user was shown.
const disclosingPolicy = 5

// Permits says whether the string lets a vendor process for a purpose, 1 to 24, on the legal basis that the vendor declares for it
// in the Global Vendor List. The vendor is its id in that list; for 0 the purposes alone count. Flexible says that the vendor
// declares the purpose as one whose basis it switches where the publisher demands the other.
//
// It follows the framework's guidelines for vendors: first the publisher's restrictions, then the purpose and the vendor on the
// basis that is left. So a vendor that is not flexible may not process where the publisher demands the other basis. Legitimate
// interest is none for purpose 1, nor, from policy version 4 on, for purposes 3 to 6. A string that is not service-specific
// permits nothing. One with PurposeOneTreatment says nothing of purpose 1, so it does not permit it. From policy version 5 on, a vendor
// that the user was not shown may not process, where the string says who was. Other restrictions by policy version and age are
// the caller's. It takes a look at each of the restrictions.
func (t *TCF) Permits(purpose, vendor int, basis Basis, flexible bool) bool {
	if !t.IsServiceSpecific || purpose < 1 || purpose > purposes || vendor < 0 || vendor > maxVendor {
		return false
	}
	if vendor != 0 && t.hides(vendor) {
		return false
	}
	basis, allowed := t.restrict(purpose, vendor, basis, flexible)
	if !allowed {
		return false
	}
	switch basis {
	case Consent:
		return t.PurposeConsents.Has(purpose) && (vendor == 0 || t.VendorConsents.Has(vendor))
	case LegitimateInterest:
		if purpose == 1 || purpose >= 3 && purpose <= 6 && t.PolicyVersion >= strictPolicy {
			return false
		}
		return t.PurposeLegitimateInterests.Has(purpose) && (vendor == 0 || t.VendorLegitimateInterests.Has(vendor))
	}
	return false
}

// hides says whether the user was shown other vendors than this one.
func (t *TCF) hides(vendor int) bool {
	return t.PolicyVersion >= disclosingPolicy && t.DisclosedVendors != nil && !t.DisclosedVendors.Has(vendor)
}

// restrict returns the basis that the publisher leaves to a vendor, and whether it leaves one. Of restrictions that contradict
// each other the strictest holds: one that forbids, then one that demands consent.
func (t *TCF) restrict(purpose, vendor int, declared Basis, flexible bool) (basis Basis, allowed bool) {
	strictest := RequireLegitimateInterest + 1
	for i := range t.PublisherRestrictions {
		one := &t.PublisherRestrictions[i]
		if one.Purpose == purpose && one.Type < strictest && one.Vendors.Has(vendor) {
			strictest = one.Type
		}
	}
	demanded := declared
	switch strictest {
	case NotAllowed:
		return declared, false
	case RequireConsent:
		demanded = Consent
	case RequireLegitimateInterest:
		demanded = LegitimateInterest
	}
	return demanded, demanded == declared || flexible
}
