package consent_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/consent/consenttest"
	"github.com/weir-dev/weir/collector/platforms"
)

// said is what one form says of a purpose: yes, no, or "" for nothing.
type said = string

// visitor is what one says, in any of the forms.
type visitor struct {
	own        map[string]said
	categories map[string]bool
	limited    bool
	privacy    string // of the letters Y, N and -; "" for none
	tcf        *european
	gpp        *global
}

// european is a string of IAB Europe's framework.
type european struct {
	consenttest.TCF
	broken bool
}

func (e *european) text() string {
	if e.broken {
		return "CPc-"
	}
	return e.String()
}

// global is a string of the Global Privacy Platform.
type global struct {
	tcf     *european
	privacy string
	states  *consenttest.States
	broken  bool
	// applicable are the sections that apply; all where there are none.
	applicable []int
}

// applies knows that 0 stands for sections that nobody knows yet, -1 for none, and that of sections none of which is in the string
// nobody can tell what they mean.
func (g *global) applies(section int) bool {
	has := map[int]bool{2: g.tcf != nil, 6: g.privacy != "", 7: g.states != nil}
	known := slices.ContainsFunc(g.applicable, func(n int) bool { return has[n] })
	return !slices.Equal(g.applicable, []int{-1}) && (!known || slices.Contains(g.applicable, section) || slices.Contains(g.applicable, 0))
}

func (v *visitor) String() string { return fmt.Sprintf("what was said: %v", v.members()) }

// members are the visitor's words as an envelope has them.
func (v *visitor) members() map[string]any {
	all := map[string]any{}
	for name, word := range v.own {
		all[name] = map[said]string{"yes": "granted", "no": "denied"}[word]
	}
	if v.categories != nil {
		all["categories"] = v.categories
	}
	if v.limited {
		all["limited_data_use"] = true
	}
	if v.privacy != "" {
		all["us_privacy"] = "1Y" + v.privacy + "N"
	}
	if v.tcf != nil {
		all["tcf"] = v.tcf.text()
	}
	if v.gpp == nil {
		return all
	}
	sections := map[int]string{}
	if v.gpp.tcf != nil {
		sections[2] = v.gpp.tcf.text()
	}
	if v.gpp.privacy != "" {
		sections[6] = "1Y" + v.gpp.privacy + "N"
	}
	if v.gpp.states != nil {
		sections[7] = v.gpp.states.National()
	}
	all["gpp"] = consenttest.GPP(sections)
	if v.gpp.broken {
		all["gpp"] = "DBAA~x"
	}
	if v.gpp.applicable != nil {
		all["gpp_sid"] = v.gpp.applicable
	}
	return all
}

var purposeNames = []string{"ad_storage", "ad_user_data", "ad_personalization", "analytics_storage", "sale"}

func randomRules(random *rand.Rand) config.Consent {
	var rules config.Consent
	words := []platforms.WhenAbsent{"", platforms.Send, platforms.Withhold}
	some := func() []platforms.Purpose {
		list := []platforms.Purpose{}
		for _, name := range purposeNames {
			if random.IntN(3) == 0 {
				list = append(list, platforms.Purpose(name))
			}
		}
		return list
	}
	rules.WhenAbsent = words[random.IntN(len(words))]
	for _, name := range []string{"partners", "marketing"} {
		if random.IntN(3) == 0 {
			if rules.Categories == nil {
				rules.Categories = map[string][]platforms.Purpose{}
			}
			rules.Categories[name] = some()
		}
	}
	for _, platform := range reached {
		if random.IntN(3) > 0 {
			continue
		}
		own := config.PlatformConsent{Name: platform.Name, WhenAbsent: words[random.IntN(len(words))]}
		if random.IntN(2) == 0 {
			own.Requires = some()
		}
		rules.Platforms = append(rules.Platforms, own)
	}
	return rules
}

func randomVisitor(random *rand.Rand, _ config.Consent) visitor {
	v := visitor{own: map[string]said{}}
	// Who says much in many forms is refused everywhere, so most say yes in few.
	yes := func() bool { return random.IntN(5) > 0 }
	for _, name := range purposeNames[:4] {
		if random.IntN(3) > 0 {
			v.own[name] = map[bool]said{true: "yes", false: "no"}[random.IntN(10) > 0]
		}
	}
	if random.IntN(5) == 0 {
		v.categories = map[string]bool{}
		for _, name := range []string{"C0002", "c0004", "C0005", "Marketing", "marketing", "partners", "preferences", "SaleOfData", "statistics"} {
			if random.IntN(4) == 0 {
				v.categories[name] = yes()
			}
		}
	}
	v.limited = random.IntN(12) == 0
	if random.IntN(5) == 0 {
		v.privacy = []string{"Y", "N", "-"}[random.IntN(3)]
	}
	if random.IntN(4) == 0 {
		v.tcf = randomTCF(random)
		v.tcf.broken = random.IntN(12) == 0
	}
	if random.IntN(5) == 0 {
		v.gpp = &global{broken: random.IntN(12) == 0}
		if random.IntN(2) == 0 {
			v.gpp.tcf = randomTCF(random)
		}
		if random.IntN(3) == 0 {
			v.gpp.privacy = []string{"Y", "N", "-"}[random.IntN(3)]
		}
		if v.gpp.tcf == nil && v.gpp.privacy == "" || random.IntN(3) == 0 {
			v.gpp.states = &consenttest.States{Sale: random.IntN(3), Sharing: random.IntN(3), Advertising: random.IntN(3), GPC: random.IntN(8) == 0}
		}
		if random.IntN(2) == 0 {
			v.gpp.applicable = [][]int{{2}, {6}, {7}, {2, 7}, {8}, {0}, {7, 0}, {-1}}[random.IntN(8)]
		}
	}
	return v
}

// entry is a platform's in the vendor list: it has consent for purposes 1, 3 and 4, and legitimate interest or consent for 7,
// which a publisher may change.
type entry struct {
	number   int
	interest bool
}

// entries are those of the types that have one; nil stands for none, and for the customer's own statistics.
var entries = map[platforms.Type]*entry{
	platforms.TypeGA4: {755, true}, platforms.TypeGoogle: {755, true}, platforms.TypeLinkedIn: {804, true}, platforms.TypeMicrosoft: {1126, false},
}

func randomTCF(random *rand.Rand) *european {
	numbers := []int{755, 804, 1126}
	e := &european{}
	for n := 1; n <= 10; n++ {
		if random.IntN(8) > 0 {
			e.Purposes = append(e.Purposes, n)
		}
		if random.IntN(2) == 0 {
			e.Interests = append(e.Interests, n)
		}
	}
	if random.IntN(4) > 0 {
		e.Vendors = append([]int{7}, numbers...)
	}
	if random.IntN(2) == 0 {
		e.InterestVendors = numbers
	}
	for _, purpose := range []int{1, 3, 7} {
		if random.IntN(6) == 0 {
			e.Restrictions = append(e.Restrictions, consenttest.Restriction{Purpose: purpose, Type: random.IntN(3), Vendors: [][]int{{7}, {755}, numbers}[random.IntN(3)]})
		}
	}
	e.Unasked = random.IntN(10) == 0
	e.Shared = random.IntN(15) == 0
	return e
}

// words collects what all forms say of a purpose. Platforms without an entry in the vendor list go by the purposes alone.
func (v *visitor) words(rules config.Consent, purpose string, vendor *entry) []said {
	words := []said{v.own[purpose]}
	for name, yes := range v.categories {
		if slices.Contains(categoryMeans(rules, name), purpose) {
			words = append(words, map[bool]said{true: "yes", false: "no"}[yes])
		}
	}
	if purpose == "sale" {
		if v.limited {
			words = append(words, "no")
		}
		words = append(words, optOutWord(v.privacy))
	}
	if v.tcf != nil {
		words = append(words, v.tcf.word(purpose, vendor))
	}
	if v.gpp != nil {
		words = append(words, v.gpp.words(purpose, vendor)...)
	}
	return words
}

func optOutWord(letter string) said { return map[string]said{"Y": "no", "N": "yes"}[letter] }

func (g *global) words(purpose string, vendor *entry) []said {
	if g.broken {
		european := purpose != "sale"
		could := g.applicable == nil || slices.Contains(g.applicable, 0) || !slices.Equal(g.applicable, []int{-1}) &&
			slices.ContainsFunc(g.applicable, func(section int) bool { return (section == 2) == european })
		return []said{map[bool]said{true: "no"}[could]}
	}
	var words []said
	if g.tcf != nil && g.applies(2) {
		words = append(words, g.tcf.word(purpose, vendor))
	}
	if purpose != "sale" {
		return words
	}
	if g.privacy != "" && g.applies(6) {
		words = append(words, optOutWord(g.privacy))
	}
	if g.states != nil && g.applies(7) {
		for _, n := range []int{g.states.Sale, g.states.Sharing, g.states.Advertising} {
			words = append(words, [...]said{"", "no", "yes"}[n])
		}
		if g.states.GPC {
			words = append(words, "no")
		}
	}
	return words
}

// word is what a string says: no where one of the framework's purposes that this one rests on is not allowed.
func (e *european) word(purpose string, vendor *entry) said {
	rests := map[string][]int{"ad_storage": {1}, "ad_user_data": {1, 7}, "ad_personalization": {3, 4}, "analytics_storage": {1}}[purpose]
	if rests == nil {
		return ""
	}
	if e.broken {
		return "no"
	}
	word := ""
	for _, n := range rests {
		if n == 1 && e.Unasked {
			continue
		}
		allowed := e.allows(n)
		if vendor != nil && purpose != "analytics_storage" {
			allowed = e.allowsVendor(n, vendor)
		}
		if e.Shared || !allowed {
			return "no"
		}
		word = "yes"
	}
	return word
}

func (e *european) allows(n int) bool { return slices.Contains(e.Purposes, n) }

// allowsVendor goes by the legal basis of the entry, unless the publisher demands another that it can follow.
func (e *european) allowsVendor(n int, vendor *entry) bool {
	interest := n == 7 && vendor.interest
	for _, r := range e.Restrictions {
		if r.Purpose != n || !slices.Contains(r.Vendors, vendor.number) {
			continue
		}
		switch {
		case r.Type == 0:
			return false
		case r.Type == 1:
			interest = false
		case n != 7: // whoever rests on consent cannot change that
			return false
		default:
			interest = true
		}
	}
	if interest {
		return slices.Contains(e.Interests, n) && slices.Contains(e.InterestVendors, vendor.number)
	}
	return slices.Contains(e.Purposes, n) && slices.Contains(e.Vendors, vendor.number)
}

// categoryMeans is the table of the documentation.
func categoryMeans(rules config.Consent, name string) []string {
	if own, found := rules.Categories[name]; found {
		var list []string
		for _, p := range own {
			list = append(list, string(p))
		}
		return list
	}
	switch name {
	case "C0002", "statistics":
		return []string{"analytics_storage"}
	case "c0004", "C0005", "Marketing", "marketing":
		return []string{"ad_storage", "ad_user_data", "ad_personalization"}
	case "SaleOfData":
		return []string{"sale"}
	}
	return nil
}

// denies says whether one form does; platform is nil for the customer's own statistics.
func (v *visitor) denies(rules config.Consent, purpose string, platform *platforms.Platform) bool {
	var vendor *entry
	if platform != nil {
		vendor = entries[platform.Type]
	}
	return slices.Contains(v.words(rules, purpose, vendor), "no")
}

// ruled is what a platform shall get of an event: nothing, for a reason, or the event in a form.
type ruled struct{ reason, form string }

// ruling is what the documentation says.
func ruling(platform *platforms.Platform, rules config.Consent, v *visitor) ruled {
	vendor := entries[platform.Type]
	withoutForm := append(slices.Clone(purposeNames[:3]), "sale")
	requires := map[platforms.Type][]string{
		platforms.TypeMeta: purposeNames[:3], platforms.TypeTikTok: purposeNames[:3], platforms.TypePinterest: purposeNames[:3],
		platforms.TypeSnapchat: purposeNames[:3], platforms.TypeReddit: purposeNames[:3],
		platforms.TypeMicrosoft: withoutForm, platforms.TypeLinkedIn: withoutForm,
		platforms.TypeGA4: {"analytics_storage"}, platforms.TypeMixpanel: {"analytics_storage"},
		platforms.TypeKlaviyo: purposeNames[:3], platforms.TypeAmplitude: {"analytics_storage"},
		platforms.TypeOpenAI:  purposeNames[:3],
		platforms.TypePostHog: {"analytics_storage"}, platforms.TypeSegment: {"analytics_storage"},
		platforms.TypeGoogle: purposeNames[:2],
	}[platform.Type]
	strict, own := rules.WhenAbsent == platforms.Withhold, false
	for _, rule := range rules.Platforms {
		if rule.Name != platform.Name {
			continue
		}
		if rule.WhenAbsent != "" {
			strict = rule.WhenAbsent == platforms.Withhold
		}
		if rule.Requires != nil {
			requires, own = nil, true
			for _, p := range rule.Requires {
				requires = append(requires, string(p))
			}
		}
	}
	for _, purpose := range purposeNames {
		if slices.Contains(requires, purpose) && v.denies(rules, purpose, platform) {
			return ruled{reason: v.reason(rules, purpose)}
		}
	}
	for _, purpose := range requires {
		if strict && (purpose != "sale" || own) && !slices.Contains(v.words(rules, purpose, vendor), "yes") {
			return ruled{reason: "consent_absent"}
		}
	}
	if platform.Type == platforms.TypeGoogle && v.denies(rules, "sale", nil) {
		return ruled{reason: "consent_sale"} // Google Ads has no milder form for it
	}
	return ruled{form: form(platform.Type, rules, v, strict)}
}

// reason is the code of what denied a purpose: the visitor in words of their own, a string that is broken, the framework to
// all, or to Google alone.
func (v *visitor) reason(rules config.Consent, purpose string) string {
	plain := *v
	plain.tcf, plain.gpp = nil, nil
	if v.gpp != nil && !v.gpp.broken {
		gpp := *v.gpp
		gpp.tcf = nil
		plain.gpp = &gpp
	}
	whole := *v
	if v.tcf != nil && v.tcf.broken {
		whole.tcf = nil
	}
	if v.gpp != nil && v.gpp.broken {
		whole.gpp = nil
	}
	switch {
	case plain.denies(rules, purpose, nil):
		return "consent_" + purpose
	case (v.tcf != nil && v.tcf.broken || v.gpp != nil && v.gpp.broken) && v.brokenDenies(purpose):
		return "consent_unreadable"
	case whole.denies(rules, purpose, nil):
		return "consent_" + purpose
	}
	return "consent_vendor"
}

// brokenDenies says whether it is a broken string that denies a purpose.
func (v *visitor) brokenDenies(purpose string) bool {
	return v.tcf != nil && v.tcf.broken && v.tcf.word(purpose, nil) == "no" ||
		v.gpp != nil && v.gpp.broken && slices.Contains(v.gpp.words(purpose, nil), "no")
}

// form is the milder form in which a platform gets an event, "" for none.
func form(kind platforms.Type, rules config.Consent, v *visitor, strict bool) string {
	sale := v.denies(rules, "sale", nil)
	switch {
	case kind == platforms.TypeMeta && sale:
		return "[LDU] 0 0"
	case kind == platforms.TypeTikTok && sale:
		return "limited_data_use"
	case kind == platforms.TypePinterest && sale:
		return "true LDP"
	case (kind == platforms.TypeSnapchat || kind == platforms.TypeReddit) && sale:
		return "[LDU]"
	case kind == platforms.TypeMicrosoft:
		words := v.words(rules, "ad_storage", entries[kind])
		switch {
		case slices.Contains(words, "no"), strict && !slices.Contains(words, "yes"):
			return "D"
		case slices.Contains(words, "yes"):
			return "G"
		}
		return ""
	case kind == platforms.TypeOpenAI && sale:
		return "true "
	case kind != platforms.TypeGA4 && kind != platforms.TypeGoogle:
		return ""
	}
	google := func(purpose string) said {
		words := v.words(rules, purpose, entries[platforms.TypeGA4])
		switch {
		case slices.Contains(words, "no"), strict && !slices.Contains(words, "yes"):
			return "DENIED"
		case slices.Contains(words, "yes"):
			return "GRANTED"
		}
		return ""
	}
	if kind == platforms.TypeGoogle {
		words := []string{}
		if word := google("ad_personalization"); word != "" {
			words = append(words, "adPersonalization CONSENT_"+word)
		}
		if word := google("ad_user_data"); word == "GRANTED" {
			words = append(words, "adUserData CONSENT_GRANTED")
		}
		return strings.Join(words, ", ")
	}
	text := ""
	for _, purpose := range []string{"ad_personalization", "ad_user_data"} {
		word := google(purpose)
		if sale || google("ad_storage") == "DENIED" {
			word = "DENIED"
		}
		if word != "" {
			text += purpose + " " + word + ", "
		}
		if purpose == "ad_user_data" && word != "DENIED" && text != "" {
			text += "with hashes, "
		}
	}
	if text == "" {
		return ""
	}
	return text[:len(text)-len(", ")]
}
