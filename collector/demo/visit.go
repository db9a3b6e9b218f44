package demo

import (
	"math/rand/v2"
	"strconv"

	"github.com/weir-dev/weir/collector/event"
)

// origin is where visits come from.
type origin struct {
	// weight is how often, newcomers' and regulars' visits apart; intent how many visits in a thousand fill a basket.
	weight, regulars, intent int
	// A visit that carries no source has none of these.
	source, medium, campaign, clickID, referrer string
}

// origins add up to 1000 in both weights.
var origins = [...]origin{
	{weight: 170, regulars: 420, intent: 190},
	{weight: 260, regulars: 180, intent: 130, referrer: "https://www.google.com/"},
	{weight: 40, regulars: 25, intent: 120, referrer: "https://www.bing.com/"},
	{weight: 150, regulars: 80, intent: 170, source: "google", medium: "cpc", campaign: "brand", clickID: "gclid", referrer: "https://www.google.com/"},
	{weight: 70, regulars: 30, intent: 120, source: "google", medium: "cpc", campaign: "shopping-generic", clickID: "gclid", referrer: "https://www.google.com/"},
	{weight: 25, regulars: 10, intent: 140, clickID: "msclkid", referrer: "https://www.bing.com/"},
	{weight: 85, regulars: 40, intent: 80, source: "facebook", medium: "paid_social", campaign: "prospecting", clickID: "fbclid"},
	{weight: 45, regulars: 35, intent: 150, source: "instagram", medium: "paid_social", campaign: "retargeting", clickID: "fbclid"},
	{weight: 40, regulars: 15, intent: 60, source: "tiktok", medium: "paid_social", campaign: "creators", clickID: "ttclid"},
	{weight: 15, regulars: 100, intent: 220, source: "newsletter", medium: "email", campaign: "weekly"},
	{weight: 30, regulars: 20, intent: 160, source: "awin", medium: "affiliate", campaign: "price-portals"},
	{weight: 20, regulars: 15, intent: 180, referrer: "https://chatgpt.com/"},
	{weight: 25, regulars: 15, intent: 70, referrer: "https://www.pinterest.com/"},
	{weight: 25, regulars: 15, intent: 110, referrer: "https://blog.example.org/gift-guide"},
}

func chooseOrigin(random *rand.Rand, regular bool) *origin {
	n := random.IntN(1000)
	for i := range origins {
		weight := origins[i].weight
		if regular {
			weight = origins[i].regulars
		}
		if n < weight {
			return &origins[i]
		}
		n -= weight
	}
	return &origins[0]
}

// visit is what the events of one visit share.
type visit struct {
	person  person
	origin  *origin
	clickID string
}

// step is one event of a visit that has not happened yet.
type step struct {
	at   int64 // in ms
	name string
	// landing is the visit's first event, which tells where it came from.
	landing bool
	visit   *visit
	// lines are what is looked at, put into the basket, bought or sent back.
	lines []line
	// voucher is taken off, in minor units.
	voucher event.Amount
	order   int // the number of a purchase's or refund's order
}

// The names of the events that Weir gives no meaning of its own.
const (
	viewContent    = "view_content"
	search         = "search"
	beginCheckout  = "begin_checkout"
	addPaymentInfo = "add_payment_info"
	signUp         = "sign_up"
	lead           = "lead"
)

// visit plans a visit that begins at start, in ms, and what follows from it on later days.
func (g *generator) visit(start int64) []step {
	known := g.people.known
	v := &visit{person: g.people.arrive(g.random)}
	v.origin = chooseOrigin(g.random, g.people.known == known)
	if v.origin.clickID != "" {
		v.clickID = g.newClickID()
	}
	at := start
	steps := []step{{at: at, name: event.Pageview, landing: true, visit: v}}
	then := func(least, most int, name string, lines []line) {
		at += int64(least + g.random.IntN(most-least))
		steps = append(steps, step{at: at, name: name, visit: v, lines: lines})
	}
	if g.random.IntN(100) < 42 { // this is not what they were looking for
		return steps
	}
	for range 1 + g.random.IntN(4) {
		if g.random.IntN(100) < 12 {
			then(4_000, 30_000, search, nil)
		}
		then(6_000, 90_000, event.Pageview, nil)
		if g.random.IntN(100) < 60 {
			then(80, 900, viewContent, g.shop.look(g.random))
		}
	}
	switch n := g.random.IntN(1000); {
	case n < 12:
		then(10_000, 60_000, signUp, nil)
	case n < 30:
		then(5_000, 60_000, lead, nil)
	}
	if g.random.IntN(1000) >= v.origin.intent {
		return steps
	}
	basket := g.shop.fill(g.random)
	for i := range basket {
		then(5_000, 120_000, event.AddToCart, basket[i:i+1])
	}
	if g.random.IntN(100) >= 55 {
		return steps
	}
	then(8_000, 180_000, beginCheckout, basket)
	if g.random.IntN(100) >= 78 {
		return steps
	}
	then(20_000, 200_000, addPaymentInfo, basket)
	if g.random.IntN(100) >= 84 {
		return steps
	}
	then(6_000, 60_000, event.Purchase, basket)
	bought := &steps[len(steps)-1]
	bought.order = g.shop.nextOrder()
	if g.random.IntN(100) < 15 {
		bought.voucher = min(500, totalOf(basket)/2)
	}
	if g.random.IntN(1000) < 45 {
		steps = append(steps, g.refund(bought))
	}
	return steps
}

// refund plans that some or all of a purchase comes back, days later.
func (g *generator) refund(bought *step) step {
	r := *bought
	r.name = event.Refund
	r.at += 24*3600_000 + g.random.Int64N(13*24*3600_000)
	if len(r.lines) > 1 && g.random.IntN(100) < 45 {
		r.lines, r.voucher = r.lines[:1], 0
	}
	return r
}

const clickIDDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"

func (g *generator) newClickID() string {
	var id [22]byte
	for i := range id {
		id[i] = clickIDDigits[g.random.IntN(len(clickIDDigits))]
	}
	return string(id[:])
}

// eventOf returns the event as the collector would have stored it.
func (g *generator) eventOf(s *step) event.Event {
	v := s.visit
	e := event.Event{
		DeliveryID: g.newUUID(s.at), Name: s.name, ClientID: g.people.clientID(v.person),
		Consent: v.person.consent(), Platforms: g.names,
	}
	e.ID = e.DeliveryID.String()
	paidIn := g.people.currency(v.person, g.options.Property.Currency)
	unit := event.MinorUnit(paidIn)
	switch s.name {
	case event.Purchase, event.Refund:
		e.OrderID = strconv.Itoa(s.order)
		e.ID = s.name + "-" + e.OrderID
		e.Contents = itemsOf(s.lines, unit)
		e.Value, e.Currency = new((totalOf(s.lines)-s.voucher)*unit), paidIn
	case event.AddToCart, beginCheckout:
		e.Contents = itemsOf(s.lines, unit)
		e.Value, e.Currency = new(totalOf(s.lines)*unit), paidIn
	case viewContent:
		e.ContentID, e.ContentName = s.lines[0].product.id, s.lines[0].product.name
	}
	switch s.name {
	case beginCheckout, addPaymentInfo, event.Purchase, event.Refund, signUp, lead:
		e.User = g.people.hashes(v.person)
	}
	if e.ClientID == "" { // who refuses the cookie is known by the account
		e.User = g.people.hashes(v.person)
	}
	if s.name != event.Refund { // that comes out of the shop's books
		e.Context = contextOf(s)
	}
	return e
}

// contextOf tells where the visitor is, and on the landing page where they came from.
func contextOf(s *step) event.Context {
	c := event.Context{PageURL: pageOf(s)}
	if s.landing || s.name == event.Purchase {
		c.IP, c.UserAgent = s.visit.person.address(), s.visit.person.userAgent()
	}
	if !s.landing {
		return c
	}
	o := s.visit.origin
	c.Referrer, c.UTMSource, c.UTMMedium, c.UTMCampaign = o.referrer, o.source, o.medium, o.campaign
	if o.clickID != "" {
		c.ClickIDs = map[string]string{o.clickID: s.visit.clickID}
	}
	return c
}

const shopURL = "https://shop.example.com"

func pageOf(s *step) string {
	switch s.name {
	case event.Pageview:
		if s.landing {
			return shopURL + "/"
		}
		return shopURL + "/c/all"
	case viewContent, event.AddToCart:
		return shopURL + "/p/" + s.lines[0].product.id
	case search:
		return shopURL + "/search"
	case signUp, lead:
		return shopURL + "/account"
	default:
		return shopURL + "/checkout"
	}
}
