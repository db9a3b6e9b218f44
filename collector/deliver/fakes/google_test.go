package fakes

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"

	"github.com/weir-dev/weir/collector/deliver/fakes/fakestest"
	"github.com/weir-dev/weir/collector/platforms"
)

// newGoogle starts a fake of Google with an account of each product.
func newGoogle(t *testing.T, clock time.Time) (*Server, *httptest.Server) {
	t.Helper()
	credentials := map[string]string{"serviceAccountKey": fakestest.ServiceAccountKey()}
	fake, err := New(platforms.TypeGoogle, []Account{
		{Platform: platforms.Platform{Name: "ads", Settings: platforms.Settings{Google: &platforms.Google{AccountID: "1", LoginAccountID: "2"}}}, Credentials: credentials},
		{Platform: platforms.Platform{Name: "stream", Settings: platforms.Settings{Google: &platforms.Google{
			Product: platforms.GoogleAnalytics, AccountID: "3", MeasurementID: "G-3",
		}}}, Credentials: credentials},
	}, nil, func() time.Time { return clock })
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(fake)
	t.Cleanup(func() {
		fake.Close()
		server.Close()
	})
	return fake, server
}

const (
	adsRequest = `{"destinations":[{"operatingAccount":{"accountType":"GOOGLE_ADS","accountId":"1"},"loginAccount":{"accountType":"GOOGLE_ADS","accountId":"2"},
		"productDestinationId":"7"}],"encoding":"HEX","events":[{"transactionId":"A-1","eventTimestamp":"2026-11-20T11:00:00Z","eventSource":"WEB",
		"conversionValue":1.5,"currency":"EUR","userData":{"userIdentifiers":[{"emailAddress":"` + hash + `"}]},"adIdentifiers":{"gclid":"G"},
		"cartData":{"items":[{"merchantProductId":"s","quantity":"2","unitPrice":1}]},"consent":{"adUserData":"CONSENT_GRANTED"}}]}`
	streamRequest = `{"destinations":[{"operatingAccount":{"accountType":"GOOGLE_ANALYTICS_PROPERTY","accountId":"3"},
		"loginAccount":{"accountType":"GOOGLE_ANALYTICS_PROPERTY","accountId":"3"},"productDestinationId":"G-3"}],"encoding":"HEX",
		"events":[{"eventName":"page_view","clientId":"1.2","eventTimestamp":"2026-11-20T11:00:00Z","eventSource":"WEB"}]}`
)

func TestFakeGoogleTakesWhatGoogleTakes(t *testing.T) {
	for name, test := range map[string]struct {
		body, old, new string
		status         int
		// in the answer, and in the complaint or the refusals.
		inBody, says string
	}{
		"a good conversion":                    {body: adsRequest, status: 200, inBody: `"requestId":"request-1"`},
		"a good event for Analytics":           {body: streamRequest, status: 200, inBody: `"requestId":"request-1"`},
		"one that is only to be checked":       {body: adsRequest, old: `"encoding"`, new: `"validateOnly":true,"encoding"`, status: 200, inBody: `{}`},
		"another account":                      {body: adsRequest, old: `"accountId":"1"`, new: `"accountId":"9"`, status: 403, inBody: "PERMISSION_DENIED", says: "may not send"},
		"no manager account":                   {body: adsRequest, old: `"loginAccount":{"accountType":"GOOGLE_ADS","accountId":"2"},`, status: 403, inBody: "PERMISSION_DENIED", says: "may not send"},
		"another data stream":                  {body: streamRequest, old: "G-3", new: "G-4", status: 403, inBody: "PERMISSION_DENIED", says: "may not send"},
		"the member of an older version":       {body: adsRequest, old: "accountType", new: "product", status: 403, inBody: "PERMISSION_DENIED", says: "may not send"},
		"a member that it has not":             {body: adsRequest, old: `"encoding"`, new: `"colour":1,"encoding"`, status: 400, inBody: "INVALID_ARGUMENT", says: "not of the platform's form"},
		"no event":                             {body: `{"destinations":[{}],"events":[]}`, status: 400, inBody: "TOO_MANY_EVENTS", says: "1 to 2000"},
		"no destination":                       {body: `{"destinations":[],"events":[{}]}`, status: 400, inBody: "TOO_MANY_DESTINATIONS", says: "1 to 10"},
		"a hash that is none":                  {body: adsRequest, old: hash, new: "ada", status: 400, inBody: "INVALID_SHA256_FORMAT", says: "is no SHA-256"},
		"a hash of nothing":                    {body: adsRequest, old: hash, new: ofEmpty, status: 400, inBody: "INVALID_SHA256_FORMAT", says: "hash of nothing"},
		"hashes in no encoding":                {body: adsRequest, old: `"encoding":"HEX",`, status: 400, inBody: "REQUIRED_FIELD_MISSING", says: "encoding must be HEX"},
		"a conversion of nobody":               {body: adsRequest, old: `"userData":{"userIdentifiers":[{"emailAddress":"` + hash + `"}]},"adIdentifiers":{"gclid":"G"},`, status: 400, inBody: "NO_IDENTIFIERS_PROVIDED", says: "no identifier"},
		"a conversion without an id":           {body: adsRequest, old: `"A-1"`, new: `""`, status: 400, inBody: "REQUIRED_FIELD_MISSING", says: "transactionId must be there"},
		"a conversion with a name":             {body: adsRequest, old: `"eventSource"`, new: `"eventName":"a","eventSource"`, status: 400, inBody: "INVALID_EVENT", says: "neither a name nor a client"},
		"a value without a currency":           {body: adsRequest, old: `"currency":"EUR",`, status: 400, inBody: "INVALID_CURRENCY_CODE", says: "currency must be there"},
		"a value that is text":                 {body: adsRequest, old: `1.5`, new: `"1.5"`, status: 400, inBody: "INVALID_ARGUMENT", says: "not of the platform's form"},
		"a quantity that is a number":          {body: adsRequest, old: `"quantity":"2"`, new: `"quantity":2`, status: 400, inBody: "INVALID_ARGUMENT", says: "not of the platform's form"},
		"a quantity of nothing":                {body: adsRequest, old: `"quantity":"2"`, new: `"quantity":"0"`, status: 400, inBody: "INVALID_NUMBER_FORMAT", says: "quantity must be"},
		"a source that is none":                {body: adsRequest, old: `"WEB"`, new: `"web"`, status: 400, inBody: "INVALID_ENUM_VALUE", says: "eventSource is none"},
		"consent in another word":              {body: adsRequest, old: "CONSENT_GRANTED", new: "GRANTED", status: 400, inBody: "INVALID_ENUM_VALUE", says: "consent is none"},
		"a time in seconds":                    {body: adsRequest, old: "2026-11-20T11:00:00Z", new: "1795172400", status: 400, inBody: "INVALID_FORMAT", says: "RFC 3339"},
		"a conversion of 91 days ago":          {body: adsRequest, old: "2026-11-20T", new: "2026-08-20T", status: 400, inBody: "EVENT_TIME_INVALID", says: "too old"},
		"an event of tomorrow":                 {body: adsRequest, old: "2026-11-20T", new: "2026-11-21T", status: 400, inBody: "EVENT_TIME_INVALID", says: "in the future"},
		"an event for Analytics of 4 days ago": {body: streamRequest, old: "2026-11-20T", new: "2026-11-16T", status: 400, inBody: "EVENT_TIME_INVALID", says: "too old"},
		"an event for Analytics of no client":  {body: streamRequest, old: `"clientId":"1.2",`, status: 400, inBody: "REQUIRED_FIELD_MISSING", says: "clientId must be there"},
		"an event for Analytics of no name":    {body: streamRequest, old: "page_view", new: "page view", status: 400, inBody: "INVALID_EVENT", says: "eventName is none"},
		"an address in the clear":              {body: adsRequest, old: `"G"`, new: `"ada@example.com"`, status: 400, inBody: "INVALID_ARGUMENT", says: "raw personal data in"},
	} {
		t.Run(name, func(t *testing.T) {
			fake, server := newGoogle(t, now)
			if !strings.Contains(test.body, test.old) {
				t.Fatalf("%s is not in %s", test.old, test.body)
			}
			body := test.body
			if test.old != "" {
				body = strings.ReplaceAll(body, test.old, test.new)
			}
			got := send(t, fake, server.URL, "/v1/events:ingest", "Authorization", "Bearer "+fake.Token(), body)
			said := got.Complaint + strings.Join(got.Refusals, "")
			if got.Status != test.status || !strings.Contains(got.Body, test.inBody) {
				t.Errorf("got %d %s, want %d with %s", got.Status, got.Body, test.status, test.inBody)
			}
			if !strings.Contains(said, test.says) || test.says == "" && said != "" {
				t.Errorf("it says %q, want %q", said, test.says)
			}
		})
	}
}

func TestFakeGoogleGrantsTokensAsGoogleDoes(t *testing.T) {
	var key struct {
		Email   string `json:"client_email"`
		Private string `json:"private_key"`
	}
	if err := json.Unmarshal([]byte(fakestest.ServiceAccountKey()), &key); err != nil {
		t.Fatal(err)
	}
	const scope = "https://www.googleapis.com/auth/datamanager"
	for name, test := range map[string]struct {
		adjust func(c *jwt.Config)
		ahead  time.Duration
		says   string
	}{
		"a grant for its scope":      {adjust: func(*jwt.Config) {}},
		"another service account":    {adjust: func(c *jwt.Config) { c.Email = "x@y" }, says: "the signature is no service account's"},
		"another scope":              {adjust: func(c *jwt.Config) { c.Scopes = []string{"https://www.googleapis.com/auth/adwords"} }, says: "the scope must be"},
		"another audience":           {adjust: func(c *jwt.Config) { c.Audience = "https://oauth2.googleapis.com/token" }, says: "the audience must be"},
		"an assertion of long ago":   {adjust: func(*jwt.Config) {}, ahead: 2 * time.Hour, says: "the assertion must be of now"},
		"an assertion of hours":      {adjust: func(c *jwt.Config) { c.Expires = 3 * time.Hour }, says: "the assertion must be of now"},
		"an assertion of the future": {adjust: func(*jwt.Config) {}, ahead: -time.Hour, says: "the assertion must be of now"},
	} {
		t.Run(name, func(t *testing.T) {
			fake, server := newGoogle(t, time.Now().Add(test.ahead))
			config := &jwt.Config{Email: key.Email, PrivateKey: []byte(key.Private), Scopes: []string{scope}, TokenURL: server.URL + "/token"}
			test.adjust(config)
			token, err := config.TokenSource(context.WithValue(t.Context(), oauth2.HTTPClient, http.DefaultClient)).Token()
			if (err == nil) != (test.says == "") {
				t.Errorf("got error %v", err)
			}
			if err == nil && time.Until(token.Expiry) < 59*time.Minute {
				t.Errorf("the token ends at %s", token.Expiry)
			}
			receipts := fake.Receipts()
			if got := receipts[len(receipts)-1].Complaint; !strings.Contains(got, test.says) || test.says == "" && got != "" {
				t.Errorf("it says %q, want %q", got, test.says)
			}
		})
	}
}

func TestFakeGoogleLetsNobodyInWithoutItsToken(t *testing.T) {
	fake, server := newGoogle(t, now)
	token := fake.Token()
	for name, header := range map[string]string{"no token": "", "another token": "Bearer other", "a token without its word": token} {
		if got := send(t, fake, server.URL, "/v1/events:ingest", "Authorization", header, adsRequest); got.Status != 401 || got.Complaint != "the token is refused" {
			t.Errorf("%s: got %d, %s", name, got.Status, got.Complaint)
		}
	}
	fake.RevokeTokens()
	if got := send(t, fake, server.URL, "/v1/events:ingest", "Authorization", "Bearer "+token, adsRequest); got.Status != 401 {
		t.Errorf("a token that was revoked: got %d", got.Status)
	}
	if len(fake.Taken()) > 0 {
		t.Errorf("it took %v", fake.Taken())
	}
}

func TestFakeGoogleNamesTheEventsThatItRefuses(t *testing.T) {
	fake, server := newGoogle(t, now)
	fake.Refuse("A-2")
	body := strings.Replace(adsRequest, `"events":[`, `"events":[{"transactionId":"A-2","eventTimestamp":"2026-11-20T11:00:00Z","eventSource":"WEB","adIdentifiers":{"gclid":"G"}},`, 1)
	got := send(t, fake, server.URL, "/v1/events:ingest", "Authorization", "Bearer "+fake.Token(), body)
	if !strings.Contains(got.Body, `"field":"events[0]"`) || strings.Contains(got.Body, "events[1]") || len(fake.Taken()) > 0 {
		t.Errorf("got %s; taken %v", got.Body, fake.Taken())
	}
}

func TestFakeGoogleSaysWhatBecameOfARequest(t *testing.T) {
	fake, server := newGoogle(t, now)
	fake.Process(Processing{Looks: 1}, Processing{}, Processing{Unknown: true}, Processing{Page: "nonsense"})
	fake.RefuseLater("PROCESSING_ERROR_REASON_INVALID_GCLID", "A-2")
	token := "Bearer " + fake.Token()
	for _, body := range []string{adsRequest, strings.ReplaceAll(adsRequest, "A-1", "A-2"), adsRequest, adsRequest} {
		send(t, fake, server.URL, "/v1/events:ingest", "Authorization", token, body)
	}
	for _, look := range []struct {
		id, want string
		status   int
	}{
		{"request-1", "PROCESSING", 200}, {"request-1", "SUCCESS", 200}, {"request-2", "PROCESSING_ERROR_REASON_INVALID_GCLID", 200},
		{"request-2", "FAILED", 200}, {"request-3", "INVALID_REQUEST_ID", 400}, {"request-4", "nonsense", 200}, {"other", "INVALID_REQUEST_ID", 400},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v1/requestStatus:retrieve?requestId="+look.id, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", token)
		answer := httptest.NewRecorder()
		fake.ServeHTTP(answer, request)
		if answer.Code != look.status || !strings.Contains(answer.Body.String(), look.want) {
			t.Errorf("%s: got %d %s, want %d with %s", look.id, answer.Code, answer.Body, look.status, look.want)
		}
	}
}
