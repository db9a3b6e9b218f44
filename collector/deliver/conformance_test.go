package deliver

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-dev/weir/collector/deliver/fakes"
	"github.com/weir-dev/weir/collector/deliver/fakes/fakestest"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// subject is what the suite has to know of a platform beside its configuration.
type subject struct {
	cfg platforms.Platform
	// texts are what the person's hashes must be of; the hash of anything else of the person is an error.
	texts map[string][]string
	// batches: several events a request, so that one may harm the others.
	batches bool
	// orders: a purchase is told by its order.
	orders bool
	// refused is what becomes of an event that the platform finds invalid.
	refused string
	// oldest is the age from which an event is not sent, 0 where there is none.
	oldest time.Duration
	// tooOld is what becomes of an event that the platform finds too old, when its clock is aheadBy; 0 for eight days.
	tooOld  string
	aheadBy time.Duration
}

// The person of all events, and the hashes' texts by each normalisation.
const (
	rawEmail  = " Ada.Love+Shop@GMail.com "
	rawPhone  = "+4915550100999"
	rawName   = " Augusta Ada "
	emailLow  = "ada.love+shop@gmail.com"
	emailGoog = "adalove@gmail.com"
	digits    = "4915550100999"
	nameMeta  = "augustaada"
	nameLow   = "augusta ada"
	clientID  = "1234567.890123"

	// The person has a second address and number, and an account.
	rawEmail2  = "Countess.L@Googlemail.com"
	emailLow2  = "countess.l@googlemail.com"
	emailGoog2 = "countessl@googlemail.com"
	rawPhone2  = "+14155550123"
	digits2    = "14155550123"
	rawUserID  = " Customer-4711 "
	userIDLow  = "customer-4711"

	rawLast, lastMeta, lastLow = " O'Lovelace ", "olovelace", "o'lovelace"
	rawStreet, street          = "Lindengasse  5", "lindengasse 5"
	rawCity, city              = "St. Gallen", "stgallen"
	rawState, stateLow         = "SG", "sg"
	rawZIP, zipCode            = "CH-9000", "ch9000"
	rawBirth, birth            = "1990-02-13", "19900213"
	rawGender, gender          = "Female", "f"
)

// subjects has a row for every platform type.
var subjects = map[platforms.Type]subject{
	platforms.TypeMeta: {
		cfg: platforms.Platform{Settings: platforms.Settings{Meta: &platforms.Meta{PixelID: "42"}}},
		texts: map[string][]string{
			"em": {emailLow, emailLow2}, "ph": {digits, digits2}, "fn": {nameMeta}, "ln": {lastMeta}, "ct": {city}, "st": {stateLow}, "zp": {zipCode},
			"country": {"ch"}, "db": {birth}, "ge": {gender}, "external_id": {userIDLow, clientID},
		},
		batches: true, refused: "failed", oldest: 7 * 24 * time.Hour, tooOld: "expired",
	},
	platforms.TypeGA4: {
		cfg:     platforms.Platform{Settings: platforms.Settings{GA4: &platforms.GA4{MeasurementID: "G-42"}}},
		texts:   map[string][]string{"sha256_email_address": {emailGoog, emailGoog2}, "sha256_phone_number": {rawPhone, rawPhone2}},
		refused: "delivered", oldest: 72 * time.Hour, tooOld: "delivered", // Google Analytics does not say so
	},
	platforms.TypeTikTok: {
		cfg: platforms.Platform{Settings: platforms.Settings{TikTok: &platforms.TikTok{EventSourceID: "C42"}}},
		texts: map[string][]string{
			"email": {emailLow, emailLow2}, "phone": {rawPhone, rawPhone2}, "first_name": {nameLow}, "last_name": {lastLow}, "zip_code": {zipCode},
			"external_id": {userIDLow, clientID},
		},
		batches: true, refused: "failed", oldest: 7 * 24 * time.Hour, tooOld: "failed",
	},
	platforms.TypePinterest: {
		cfg: platforms.Platform{Settings: platforms.Settings{Pinterest: &platforms.Pinterest{AdAccountID: "42"}}},
		texts: map[string][]string{
			"em": {emailLow, emailLow2}, "ph": {digits, digits2}, "fn": {nameLow}, "ln": {lastLow}, "ct": {city}, "st": {stateLow}, "zp": {zipCode},
			"country": {"ch"}, "db": {birth}, "ge": {gender}, "external_id": {userIDLow, clientID},
		},
		batches: true, refused: "failed", oldest: 7 * 24 * time.Hour, tooOld: "failed",
	},
	platforms.TypeMixpanel: {
		cfg:     platforms.Platform{Settings: platforms.Settings{Mixpanel: &platforms.Mixpanel{ProjectID: "42"}}},
		batches: true, refused: "failed", tooOld: "delivered",
	},
	platforms.TypeWebhook: {
		cfg: platforms.Platform{Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: "/hook"}}},
		texts: map[string][]string{
			"email": {emailLow}, "emails": {emailLow, emailLow2}, "phone": {rawPhone}, "phones": {rawPhone, rawPhone2},
			"first_name": {nameLow}, "last_name": {lastLow}, "street": {street}, "city": {city}, "state": {stateLow}, "zip": {zipCode},
			"date_of_birth": {birth}, "gender": {gender},
		},
		refused: "failed",
	},
	platforms.TypeMicrosoft: {
		cfg: platforms.Platform{Settings: platforms.Settings{Microsoft: &platforms.Microsoft{TagID: "42"}}},
		texts: map[string][]string{
			"em": {emailGoog}, "ph": {rawPhone}, "externalId": {userIDLow},
		},
		batches: true, refused: "failed", oldest: 7 * 24 * time.Hour, tooOld: "failed",
	},
	platforms.TypeLinkedIn: {
		cfg: platforms.Platform{EventNames: map[string]string{"purchase": "104012"}},
		texts: map[string][]string{
			"SHA256_EMAIL": {emailLow}, "SHA256_IP_ADDRESS": {"203.0.113.7"}, "hashedFirstName": {nameMeta}, "hashedLastName": {lastMeta},
			"externalIds": {userIDLow},
		},
		batches: true, refused: "failed", aheadBy: 91 * 24 * time.Hour, tooOld: "failed",
	},
	platforms.TypeKlaviyo: {
		cfg:     platforms.Platform{Settings: platforms.Settings{Klaviyo: &platforms.Klaviyo{}}},
		batches: true, refused: "failed", tooOld: "delivered",
	},
	platforms.TypeAmplitude: {
		cfg:     platforms.Platform{Settings: platforms.Settings{Amplitude: &platforms.Amplitude{}}},
		batches: true, refused: "failed", tooOld: "delivered",
	},
	platforms.TypeLog: {cfg: platforms.Platform{}},
	platforms.TypeSnapchat: {
		cfg: platforms.Platform{Settings: platforms.Settings{Snapchat: &platforms.Snapchat{PixelID: "1ec32188-754e-4be2-8e55-c949a984a39f"}}},
		texts: map[string][]string{
			"em": {emailLow, emailLow2}, "ph": {digits, digits2}, "fn": {nameMeta}, "ln": {lastMeta}, "ct": {city}, "st": {stateLow}, "zp": {zipCode},
			"country": {"ch"}, "ge": {gender}, "external_id": {userIDLow, clientID},
		},
		batches: true, refused: "failed", tooOld: "delivered", // no event may be as old as Snapchat takes it
	},
	platforms.TypeReddit: {
		cfg:     platforms.Platform{Settings: platforms.Settings{Reddit: &platforms.Reddit{PixelID: "a2_42"}}},
		texts:   map[string][]string{"email": {emailGoog}, "phone_number": {rawPhone}, "external_id": {userIDLow}},
		batches: true, refused: "failed", oldest: 7 * 24 * time.Hour, tooOld: "failed",
	},
	platforms.TypePostHog: {
		cfg:     platforms.Platform{Settings: platforms.Settings{PostHog: &platforms.PostHog{}}},
		batches: true, refused: "failed", tooOld: "delivered",
	},
	platforms.TypeSegment: {
		cfg:     platforms.Platform{Settings: platforms.Settings{Segment: &platforms.Segment{}}},
		batches: true, refused: "delivered", tooOld: "delivered", // Segment does not say so
	},
	platforms.TypeOpenAI: {
		cfg: platforms.Platform{Settings: platforms.Settings{OpenAI: &platforms.OpenAI{PixelID: "px-42"}}},
		texts: map[string][]string{
			"emails_sha256": {emailLow, emailLow2}, "phone_numbers_sha256": {digits, digits2},
			"first_names_sha256": {nameMeta}, "last_names_sha256": {lastMeta}, "external_ids_sha256": {strings.TrimSpace(rawUserID), clientID},
		},
		batches: true, refused: "failed", oldest: 7 * 24 * time.Hour, tooOld: "failed",
	},
	platforms.TypeGoogle: {
		cfg: platforms.Platform{
			EventNames: map[string]string{"purchase": "77"}, Settings: platforms.Settings{Google: &platforms.Google{AccountID: "42"}},
		},
		texts:   map[string][]string{"emailAddress": {emailGoog, emailGoog2}, "phoneNumber": {rawPhone, rawPhone2}},
		batches: true, orders: true, refused: "failed",
	},
}

var suiteCredentials = map[string]string{
	"accessToken": accessToken, "apiSecret": "api-secret-for-tests", "conversionToken": "conversion-token-for-tests",
	"serviceAccountUsername": "weir.42.mp-service-account", "serviceAccountSecret": "service-account-secret-for-tests",
	"signingSecret": signingSecret, "projectToken": "project-token-for-tests", "writeKey": "write-key-for-tests", "apiKey": "api-key-for-tests",
	"serviceAccountKey": fakestest.ServiceAccountKey(),
}

// site is a platform under the suite: its fake, what reached it over the wire, and the deliverer.
type site struct {
	*harness
	subject
	fake *fakes.Server
	// ahead is by how much the fake's clock is.
	ahead atomic.Int64
	trap  *httptest.Server

	mu       sync.Mutex
	arrivals []time.Time
	wire     bytes.Buffer
	sent     int
}

func newSite(t *testing.T, kind platforms.Type) *site {
	s := &site{subject: subjects[kind]}
	s.cfg.Name, s.cfg.Type = "p", kind
	s.trap = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	t.Cleanup(s.trap.Close)
	if fakes.Has(kind) {
		s.serve(t)
	}
	s.harness = newHarness(t, s.cfg)
	s.credentials["p"] = suiteCredentials
	return s
}

// serve starts the fake and points the platform to it.
func (s *site) serve(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.record(r)
		s.fake.ServeHTTP(w, r)
	}))
	traits, _ := s.cfg.Type.Traits()
	if traits.HasEndpoint {
		s.cfg.Endpoint = server.URL
	} else {
		s.cfg.Webhook = &platforms.Webhook{URL: server.URL + s.cfg.Webhook.URL}
	}
	var err error
	s.fake, err = fakes.New(s.cfg.Type, []fakes.Account{{Platform: s.cfg, Credentials: suiteCredentials}}, nil,
		func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.fake.Close()
		server.Close()
	})
	right := map[string]bool{}
	for _, texts := range s.texts {
		for _, text := range texts {
			right[text] = true
		}
	}
	for _, text := range []string{
		rawEmail, strings.TrimSpace(rawEmail), emailLow, emailGoog, "adalove+shop@gmail.com", rawPhone, digits,
		rawName, strings.TrimSpace(rawName), nameMeta, nameLow, strings.ToLower(rawName),
		rawEmail2, emailLow2, emailGoog2, rawPhone2, digits2, rawUserID, strings.TrimSpace(rawUserID), userIDLow,
		rawLast, strings.TrimSpace(rawLast), lastMeta, lastLow, rawStreet, strings.ToLower(rawStreet), street, rawCity, strings.ToLower(rawCity), city,
		rawState, stateLow, rawZIP, strings.ToLower(rawZIP), zipCode, rawBirth, birth, rawGender, gender, "CH", "ch",
	} {
		if !right[text] {
			s.fake.Forbid(hashOf(text))
		}
	}
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// record keeps every byte that arrives, whatever the fake then does with it.
func (s *site) record(r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the deliverer gave up
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrivals = append(s.arrivals, time.Now())
	fmt.Fprintln(&s.wire, r.RequestURI, r.Header, string(body))
}

// purchase accepts an event with all of a person and returns its position and id.
func (s *site) purchase(adjust string) (stream.Position, string) {
	s.t.Helper()
	s.sent++
	id := fmt.Sprintf("evt-%d", s.sent)
	return s.accept(fmt.Sprintf(`{"event":"purchase","event_id":%q,"client_id":%q,"user_id":%q,
		"user":{"email":[%q,%q],"phone":[%q,%q],"first_name":%q,"last_name":%q,"street":%q,"city":%q,"state":%q,"zip":%q,"country":"CH",
			"date_of_birth":%q,"gender":%q},
		"data":{"value":12.5,"currency":"EUR","order_id":"order-%d","contents":[{"id":"sku-1","name":"Lamp for ada.love@gmail.com"}]},
		"context":{"page_url":"https://shop.example/?mail=Ada.Love%%2BShop%%40GMail.com","ip":"203.0.113.7","user_agent":"Mozilla/5.0"}%s}`,
		id, clientID, rawUserID, rawEmail, rawEmail2, rawPhone, rawPhone2, rawName, rawLast, rawStreet, rawCity, rawState, rawZIP, rawBirth, rawGender,
		s.sent, adjust)), id
}

// launch starts a deliverer with a short timeout.
func (s *site) launch() *running {
	return s.start("pod-1", func(e *Engine) {
		e.timing.request = time.Second
		e.timing.backoff = backoff{unit: 50 * time.Millisecond, cap: 200 * time.Millisecond, floor: 50 * time.Millisecond}
		e.timing.breaker = e.timing.backoff
	})
}

// becomes waits until an event has a status and returns its record.
func (s *site) becomes(what string, position stream.Position, status string) record {
	s.t.Helper()
	s.await(what, func() string {
		got := s.records("p")[position]
		return cmp.Diff(record{Status: status, Attempts: got.Attempts, Reason: got.Reason}, got)
	})
	return s.records("p")[position]
}

// ordeals are what an event that is sent alone goes through.
var ordeals = map[string]struct {
	errs []fakes.Failure
	want string
	// attempts at least, or exactly where the platform only wants a pause.
	attempts int
	exactly  bool
}{
	"success":                           {want: "delivered", attempts: 1},
	"a 400":                             {errs: []fakes.Failure{{Status: 400}}, want: "failed", attempts: 1},
	"a 401":                             {errs: []fakes.Failure{{Status: 401}}, want: "delivered", attempts: 2},
	"a 403":                             {errs: []fakes.Failure{{Status: 403}}, want: "delivered", attempts: 2},
	"a 408":                             {errs: []fakes.Failure{{Status: 408}}, want: "delivered", attempts: 2},
	"a 413":                             {errs: []fakes.Failure{{Status: 413}}, want: "failed", attempts: 1},
	"a 429 with Retry-After":            {errs: []fakes.Failure{{Status: 429, RetryAfter: time.Second}}, want: "delivered", attempts: 1, exactly: true},
	"a 500":                             {errs: []fakes.Failure{{Status: 500}}, want: "delivered", attempts: 2},
	"a 503 twice":                       {errs: []fakes.Failure{{Status: 503}, {Status: 503}}, want: "delivered", attempts: 3},
	"a 502 with a web page":             {errs: []fakes.Failure{{Status: 502, Page: true}}, want: "delivered", attempts: 2},
	"no answer":                         {errs: []fakes.Failure{{Silent: true}}, want: "delivered", attempts: 2},
	"no answer, though it is taken":     {errs: []fakes.Failure{{Silent: true, After: true}}, want: "delivered", attempts: 2},
	"a reset":                           {errs: []fakes.Failure{{Reset: true}}, want: "delivered", attempts: 2},
	"a reset, though it is taken":       {errs: []fakes.Failure{{Reset: true, After: true}}, want: "delivered", attempts: 2},
	"a 500, though it is taken":         {errs: []fakes.Failure{{Status: 500, After: true}}, want: "delivered", attempts: 2},
	"a redirect, which is not followed": {errs: []fakes.Failure{{Status: 307, Location: "trap"}}, want: "delivered", attempts: 2},
}

func TestConformance(t *testing.T) {
	for _, kind := range platforms.Types() {
		if kind == platforms.TypeS3 {
			continue // no request has events, but a file: lake_writer_test.go is its suite
		}
		t.Run(string(kind), func(t *testing.T) {
			if _, ok := subjects[kind]; !ok {
				t.Fatal("the suite has no row for this type")
			}
			t.Parallel()
			s := newSite(t, kind)
			if s.fake == nil {
				s.launch()
				position, id := s.purchase("")
				s.becomes("success", position, "delivered")
				if !strings.Contains(s.log.String(), id) {
					t.Errorf("the log does not show %s:\n%s", id, s.log)
				}
				s.assertNothingRaw()
				return
			}
			engine := s.batchOrdeals()
			for name := range ordeals {
				s.ordeal(name)
			}
			s.ages()
			engine.stop()
			s.assertNothingRaw()
			s.assertReceipts()
		})
	}
}

// ordeal sends one event through the errors.
func (s *site) ordeal(name string) {
	s.t.Helper()
	o := ordeals[name]
	if len(o.errs) > 0 && o.errs[0].Location != "" {
		o.errs = []fakes.Failure{{Status: o.errs[0].Status, Location: s.trap.URL}}
	}
	s.fake.Fail(o.errs...)
	s.mu.Lock()
	before := len(s.arrivals)
	s.mu.Unlock()
	position, _ := s.purchase("")
	got := s.becomes(name, position, o.want)
	if got.Attempts < o.attempts || (o.exactly && got.Attempts != o.attempts) {
		s.t.Errorf("%s: got %d attempts, want %d", name, got.Attempts, o.attempts)
	}
	if (got.Reason == "") != (got.Status == "delivered") {
		s.t.Errorf("%s: got reason %q with status %s", name, got.Reason, got.Status)
	}
	if o.exactly {
		s.mu.Lock()
		pause := s.arrivals[before+1].Sub(s.arrivals[before])
		s.mu.Unlock()
		if pause < o.errs[0].RetryAfter {
			s.t.Errorf("%s: tried again after %s, want %s at least", name, pause, o.errs[0].RetryAfter)
		}
	}
}

// batchOrdeals are about events that wait together before the deliverer starts. It returns the deliverer.
func (s *site) batchOrdeals() *running {
	s.t.Helper()
	want := map[stream.Position]record{}
	for i := range 5 {
		position, id := s.purchase("")
		want[position] = record{Status: "delivered"}
		if i == 2 {
			if s.orders {
				id = fmt.Sprintf("order-%d", s.sent)
			}
			s.fake.Refuse(id)
			want[position] = record{Status: s.refused}
		}
	}
	if s.batches {
		s.fake.Fail(fakes.Failure{Status: http.StatusRequestEntityTooLarge})
	}
	engine := s.launch()
	s.awaitStatuses("one bad event in a batch that is too large", want)
	for id, n := range s.fake.Taken() {
		if n != 1 {
			s.t.Errorf("%s was taken %d times, want once", id, n)
		}
	}
	return engine
}

func (s *site) awaitStatuses(what string, want map[stream.Position]record) {
	s.t.Helper()
	s.await(what, func() string {
		got := s.records("p")
		for position, r := range got {
			got[position] = record{Status: r.Status}
		}
		return cmp.Diff(want, got)
	})
}

// ages: what the platform would find too old is not sent; what it finds too old all the same ends there.
func (s *site) ages() {
	s.t.Helper()
	s.mu.Lock()
	before := len(s.arrivals)
	s.mu.Unlock()
	if s.oldest > 0 {
		at := time.Now().Add(-s.oldest + 30*time.Minute).UTC().Format(time.RFC3339)
		position, _ := s.purchase(`,"timestamp":"` + at + `"`)
		if got := s.becomes("an old event", position, "skipped"); got.Reason != "too_old" || got.Attempts != 0 {
			s.t.Errorf("got %+v, want it to have been skipped without an attempt", got)
		}
	}
	s.mu.Lock()
	after := len(s.arrivals)
	s.mu.Unlock()
	if after != before {
		s.t.Errorf("an event that is too old was sent")
	}
	if s.tooOld != "" {
		s.ahead.Store(int64(max(s.aheadBy, 8*24*time.Hour)))
		position, _ := s.purchase("")
		s.becomes("an event that the platform finds too old", position, s.tooOld)
		s.ahead.Store(0)
	}
}

// assertNothingRaw looks for the person and the secrets where neither may be.
func (s *site) assertNothingRaw() {
	s.t.Helper()
	s.mu.Lock()
	wire := strings.ToLower(s.wire.String())
	s.mu.Unlock()
	unescaped, err := url.QueryUnescape(strings.ReplaceAll(wire, "%", "%25"))
	if err != nil {
		s.t.Fatal(err)
	}
	log := strings.ToLower(s.log.String())
	for _, raw := range []string{
		"ada.love", "adalove", "ada%2elove", "gmail", digits, digits[2:], "augusta", "countess", "googlemail", digits2, "lovelace", "lindengasse", "gallen",
		zipCode, rawZIP, rawBirth, birth, "female",
	} {
		raw = strings.ToLower(raw)
		if strings.Contains(wire, raw) || strings.Contains(unescaped, raw) {
			s.t.Errorf("the platform was sent %q", raw)
		}
		if strings.Contains(log, raw) {
			s.t.Errorf("the log shows %q", raw)
		}
	}
	for key, secret := range suiteCredentials {
		if strings.Contains(s.log.String(), secret) {
			s.t.Errorf("the log shows the credential %s", key)
		}
	}
	for _, text := range []string{emailLow, digits, rawPhone, nameLow, emailLow2, digits2, rawPhone2, lastLow, street, city, zipCode, birth, userIDLow} {
		if strings.Contains(log, hashOf(text)) {
			s.t.Errorf("the log shows the hash of %q", text)
		}
	}
}

// assertReceipts: no request was at error, and the person's hashes are of what the platform asks for.
func (s *site) assertReceipts() {
	s.t.Helper()
	want := map[string][]string{}
	for field, texts := range s.texts {
		for _, text := range texts {
			want[field] = append(want[field], hashOf(text))
		}
	}
	receipts := s.fake.Receipts()
	if len(receipts) == 0 {
		s.t.Fatal("the fake got nothing")
	}
	taken := 0
	for _, receipt := range receipts {
		if receipt.Complaint != "" {
			s.t.Errorf("the fake complains: %s", receipt.Complaint)
		}
		for _, e := range receipt.Events {
			if diff := cmp.Diff(want, e.Hashes, cmpopts.EquateEmpty()); diff != "" {
				s.t.Errorf("hashes (-want +got):\n%s", diff)
			}
			if e.Refusal == "" {
				taken++
			}
			if e.Value != event.Amount(125_000).String() || e.Currency != "EUR" {
				s.t.Errorf("got %s %s", e.Value, e.Currency)
			}
		}
	}
	if taken == 0 {
		s.t.Error("the fake took nothing")
	}
}
