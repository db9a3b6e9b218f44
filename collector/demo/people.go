package demo

import (
	"crypto/sha256"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/weir-dev/weir/collector/event"
)

// people are the shop's visitors. Each is a number from 0 on, in the order in which they came first; what they are
// like follows from it.
type people struct {
	seed uint64
	// start is when the past begins, in seconds since 1970.
	start int64
	// currencies are what the few pay with who do not pay in the property's own.
	currencies []string
	// variants are the hashes that the collector would have kept.
	variants event.VariantSet
	// known is how many have come so far.
	known int
}

// person is one visitor.
type person struct {
	number int
	// traits are random bits that stay the same.
	traits uint64
	// nobody has neither a client id nor an account: a server that says nothing of whom an event is about.
	nobody bool
}

// newcomers is how many visits in a thousand are somebody's first.
const newcomers = 210

// arrive returns who comes next: somebody new, or one of those who were here, rather a recent one.
func (p *people) arrive(random *rand.Rand) person {
	switch {
	case random.IntN(100) == 0:
		return person{number: -1, nobody: true}
	case p.known == 0 || random.IntN(1000) < newcomers:
		p.known++
		return p.person(p.known - 1)
	default:
		back := random.IntN(p.known)
		return p.person(p.known - 1 - int(int64(back)*random.Int64N(int64(p.known))/int64(p.known)))
	}
}

func (p *people) person(number int) person {
	// The finishing steps of SplitMix64 make neighbours differ in all bits.
	z := p.seed + uint64(number+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return person{number: number, traits: z ^ z>>31}
}

// trait returns a number below n that stays the same for the person; slot tells several of them apart.
func (v person) trait(slot, n int) int { return int((v.traits >> (slot * 8)) % uint64(n)) }

// clientID is what a cookie of Google's looks like. Some have refused it and are known by their account alone.
func (p *people) clientID(v person) string {
	if v.nobody || v.trait(0, 100) < 2 {
		return ""
	}
	first := 100_000_000 + v.traits%2_000_000_000
	seen := p.start - int64(v.traits>>40%(120*24*3600))
	return strconv.FormatUint(first, 10) + "." + strconv.FormatInt(seen, 10)
}

// currency is what the person pays with; own is the property's.
func (p *people) currency(v person, own string) string {
	if v.trait(1, 100) < 6 {
		return p.currencies[v.trait(2, len(p.currencies))]
	}
	return own
}

func currenciesBeside(own string) []string {
	var list []string
	for _, code := range []string{"EUR", "USD", "GBP", "CHF"} {
		if code != own {
			list = append(list, code)
		}
	}
	return list
}

var firstNames = [...]string{
	"Anna", "Ben", "Carla", "David", "Elif", "Felix", "Greta", "Hugo", "Ines", "Jonas", "Karin", "Leo", "Mara", "Nico",
	"Olga", "Paul", "Rosa", "Samir", "Tilda", "Umut", "Vera", "Wim", "Yara", "Zoe",
}

// identity is what the person enters at the checkout; the phone is "" for the half who keep theirs to themselves.
func (v person) identity() (email, phone, firstName string) {
	if v.nobody {
		return "", "", ""
	}
	number := strconv.Itoa(v.number)
	if v.trait(3, 2) == 0 {
		phone = "+999" + strings.Repeat("0", max(0, 9-len(number))) + number // no country has the code 999
	}
	return "visitor" + number + "@example.com", phone, firstNames[v.trait(4, len(firstNames))]
}

// hashes are what the collector would have made of the identity. The address is plain enough for all its
// normalisations to be the same, and so is the name.
func (p *people) hashes(v person) event.Hashes {
	var h event.Hashes
	email, phone, firstName := v.identity()
	put := func(text string, variants ...event.Variant) {
		if text == "" {
			return
		}
		sum := sha256.Sum256([]byte(text))
		for _, variant := range variants {
			if p.variants.Has(variant) {
				h[variant] = sum
			}
		}
	}
	put(email, event.EmailLower, event.EmailGoogle, event.EmailMicrosoft, event.EmailAlnum)
	put(strings.TrimPrefix(phone, "+"), event.PhoneDigits)
	put(phone, event.PhoneE164)
	put(strings.ToLower(firstName), event.FirstNameMeta, event.FirstNameLower)
	return h
}

var userAgents = [...]string{
	"Mozilla/5.0 (iPhone; CPU iPhone OS 19_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.1 Mobile/15E148 Safari/604.1",
	"Mozilla/5.0 (Linux; Android 16; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/146.0.0.0 Mobile Safari/537.36",
	"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/146.0.0.0 Safari/537.36",
	"Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:150.0) Gecko/20100101 Firefox/150.0",
	"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.1 Safari/605.1.15",
}

func (v person) userAgent() string { return userAgents[v.trait(5, len(userAgents))] }

// networks are set aside for documentation.
var networks = [...]string{"192.0.2.", "198.51.100.", "203.0.113."}

func (v person) address() string {
	return networks[v.trait(6, len(networks))] + strconv.Itoa(1+v.trait(7, 254))
}

// consent is what the person answered to the banner; most answer.
func (v person) consent() event.Consent {
	switch n := v.trait(2, 100); {
	case v.nobody || n < 25:
		return event.Consent{}
	case n < 36:
		return event.Consent{AdStorage: event.Denied, AdUserData: event.Denied, AdPersonalization: event.Denied, AnalyticsStorage: event.Granted}
	default:
		return event.Consent{AdStorage: event.Granted, AdUserData: event.Granted, AdPersonalization: event.Granted, AnalyticsStorage: event.Granted}
	}
}
