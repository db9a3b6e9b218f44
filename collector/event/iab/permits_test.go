package iab_test

import (
	"testing"

	"github.com/weir-dev/weir/collector/event/iab"
)

func TestPermits(t *testing.T) {
	// The user consented to purposes 1, 2, 3 and 7 and objected to no interest in 1, 2, 3 and 9, of vendors 5 to 7 and 6 to 8.
	usual := core{
		consents: []int{1, 2, 3, 7}, interests: []int{1, 2, 3, 9}, vendors: bitfield(8, 5, 6, 7), liVendors: rangeField(8, [2]int{6, 8}),
	}
	restricted := func(restrictions ...string) core {
		c := usual
		c.restrictions = restrictions
		return c
	}
	const consent, interest = iab.Consent, iab.LegitimateInterest
	all := [2]int{1, 65535}
	tests := map[string]struct {
		core            core
		purpose, vendor int
		basis           iab.Basis
		flexible        bool
		want            bool
	}{
		"consent to purpose and vendor":                                   {usual, 2, 5, consent, false, true},
		"no consent to the purpose":                                       {usual, 4, 5, consent, false, false},
		"no consent to the vendor":                                        {usual, 2, 8, consent, false, false},
		"no vendor: consent to the purpose is enough":                     {usual, 2, 0, consent, false, true},
		"no vendor: no consent to the purpose":                            {usual, 4, 0, consent, false, false},
		"interest in purpose and vendor":                                  {usual, 2, 8, interest, false, true},
		"objection to the purpose":                                        {usual, 7, 8, interest, false, false},
		"objection to the vendor":                                         {usual, 2, 5, interest, false, false},
		"no vendor: interest in the purpose is enough":                    {usual, 9, 0, interest, false, true},
		"a flexible vendor does not switch unasked":                       {usual, 7, 6, interest, true, false},
		"nor to consent, when there is interest alone":                    {usual, 9, 6, consent, true, false},
		"purpose 1 needs consent":                                         {usual, 1, 6, interest, false, false},
		"purpose 3 needs consent by the policies of TCF 2.2":              {usual, 3, 6, interest, false, false},
		"purpose 3 did not by those before":                               {core{policy: 3, interests: []int{3}, liVendors: bitfield(6, 6)}, 3, 6, interest, false, true},
		"purpose 0":                                                       {usual, 0, 5, consent, false, false},
		"purpose 25":                                                      {usual, 25, 5, consent, false, false},
		"a purpose below zero":                                            {usual, -1, 5, consent, false, false},
		"a vendor below zero":                                             {usual, 2, -5, consent, false, false},
		"a vendor that no string can have":                                {usual, 2, 65536 + 5, consent, false, false},
		"another basis":                                                   {usual, 2, 6, iab.Basis(2), false, false},
		"a string that is not service-specific":                           {core{global: true, consents: []int{2}, vendors: bitfield(5, 5)}, 2, 5, consent, false, false},
		"the publisher forbids the purpose":                               {restricted(restriction(2, 0, all)), 2, 5, consent, false, false},
		"the publisher forbids it to a flexible vendor":                   {restricted(restriction(2, 0, all)), 2, 6, interest, true, false},
		"the publisher forbids another purpose":                           {restricted(restriction(3, 0, all)), 2, 5, consent, false, true},
		"the publisher forbids it to others":                              {restricted(restriction(2, 0, [2]int{6, 99})), 2, 5, consent, false, true},
		"no vendor: restrictions do not count":                            {restricted(restriction(2, 0, all)), 2, 0, consent, false, true},
		"consent is demanded and declared":                                {restricted(restriction(2, 1, all)), 2, 5, consent, false, true},
		"consent is demanded, interest declared":                          {restricted(restriction(2, 1, all)), 2, 6, interest, false, false},
		"consent is demanded, interest declared and flexible":             {restricted(restriction(2, 1, all)), 2, 6, interest, true, true},
		"consent is demanded of a flexible vendor who lacks it":           {restricted(restriction(2, 1, all)), 2, 8, interest, true, false},
		"interest is demanded and declared":                               {restricted(restriction(2, 2, all)), 2, 8, interest, false, true},
		"interest is demanded, consent declared":                          {restricted(restriction(2, 2, all)), 2, 6, consent, false, false},
		"interest is demanded, consent declared and flexible":             {restricted(restriction(2, 2, all)), 2, 6, consent, true, true},
		"interest is demanded of a flexible vendor who lacks it":          {restricted(restriction(2, 2, all)), 2, 5, consent, true, false},
		"interest is demanded where it is none, for purpose 1":            {restricted(restriction(1, 2, all)), 1, 6, consent, true, false},
		"of both demands that for consent holds":                          {restricted(restriction(2, 2, all), restriction(2, 1, all)), 2, 5, consent, false, true},
		"of both demands that for consent holds, so interest is no basis": {restricted(restriction(2, 1, all), restriction(2, 2, all)), 2, 6, interest, false, false},
		"a ban holds before demands":                                      {restricted(restriction(2, 1, all), restriction(2, 0, all)), 2, 5, consent, false, false},
		"restrictions of one purpose and type that are apart":             {restricted(restriction(2, 0, [2]int{9, 9}), restriction(2, 0, [2]int{5, 5})), 2, 5, consent, false, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			read, err := iab.ParseTCF(tt.core.text())
			if err != nil {
				t.Fatal(err)
			}
			if got := read.Permits(tt.purpose, tt.vendor, tt.basis, tt.flexible); got != tt.want {
				t.Errorf("Permits(%d, %d, %d, %t) = %t", tt.purpose, tt.vendor, tt.basis, tt.flexible, got)
			}
		})
	}
}

func TestWhomTheUserWasNotShownIsNotPermitted(t *testing.T) {
	said := func(policy int) string {
		return core{
			policy: policy, consents: []int{2}, interests: []int{2}, vendors: bitfield(6, 5, 6), liVendors: bitfield(6, 5, 6),
			restrictions: []string{restriction(9, 0, [2]int{1, 6})},
		}.text()
	}
	fifth, none := "."+text("001"+bitfield(5, 5)), "."+text("001"+bitfield(0))
	for sentence, test := range map[string]struct {
		text   string
		vendor int
		basis  iab.Basis
		want   bool
	}{
		"a vendor that was shown":                           {said(5) + fifth, 5, iab.Consent, true},
		"a vendor that was not, with consent":               {said(5) + fifth, 6, iab.Consent, false},
		"a vendor that was not, with interest":              {said(5) + fifth, 6, iab.LegitimateInterest, false},
		"a vendor, where none was shown":                    {said(5) + none, 5, iab.Consent, false},
		"a vendor, where the string does not say":           {said(5), 6, iab.Consent, true},
		"a vendor that was not shown, by a later policy":    {said(6) + fifth, 6, iab.Consent, false},
		"a vendor that was not shown, by the policy before": {said(4) + fifth, 6, iab.Consent, true},
		"the purpose alone, of which no vendor has any bit": {said(5) + none, 0, iab.Consent, true},
		"interest, of a vendor that was shown":              {said(5) + fifth, 5, iab.LegitimateInterest, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			read, err := iab.ParseTCF(test.text)
			if err != nil {
				t.Fatal(err)
			}
			if got := read.Permits(2, test.vendor, test.basis, false); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
