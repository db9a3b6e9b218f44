package fakes

import (
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/weir-dev/weir/collector/platforms"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const (
	secret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	hash      = "b5fc85e55755f9e0d030a10ab4429b6b2944855f9a0d60077fe832becbc41d72"
	snapPixel = "1ec32188-754e-4be2-8e55-c949a984a39f"
	ofEmpty   = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

var account = Account{
	Platform: platforms.Platform{
		Name: "p", Settings: platforms.Settings{
			Meta: &platforms.Meta{PixelID: "1"}, GA4: &platforms.GA4{MeasurementID: "G-1"}, TikTok: &platforms.TikTok{EventSourceID: "C1"},
			Pinterest: &platforms.Pinterest{AdAccountID: "1"}, Mixpanel: &platforms.Mixpanel{ProjectID: "1"},
			Webhook: &platforms.Webhook{URL: "http://127.0.0.1/hook"}, Snapchat: &platforms.Snapchat{PixelID: snapPixel},
			Reddit:    &platforms.Reddit{PixelID: "a2_1"},
			Microsoft: &platforms.Microsoft{TagID: "1"},
			Klaviyo:   &platforms.Klaviyo{}, Amplitude: &platforms.Amplitude{},
			PostHog: &platforms.PostHog{}, Segment: &platforms.Segment{}, OpenAI: &platforms.OpenAI{PixelID: "px-1"},
		},
		EventNames: map[string]string{"lead": "104012"},
	},
	Credentials: map[string]string{
		"accessToken": "token", "apiSecret": "token", "conversionToken": "token",
		"serviceAccountUsername": "weir", "serviceAccountSecret": "token", "projectToken": "project", "gdprToken": "gdpr", "signingSecret": secret,
		"writeKey": "token", "apiKey": "token",
	},
}

// dialect says how a request to a platform is made.
type dialect struct {
	url, header, value string
	// event is a good one, with a verb for its time and %q for its id; body is what it is put into.
	event, body string
	// seconds is its time as a number, or stamp as text.
	seconds func(time.Time) int64
	stamp   func(time.Time) string
	// further are headers beside the credential's.
	further http.Header
}

// dialects say how a request to each platform is made: with the right credential or another.
var dialects = map[platforms.Type]dialect{
	platforms.TypeMeta: {
		url: "/v26.0/1/events", header: "Authorization", value: "Bearer token",
		event: `{"event_name":"Lead","event_time":%d,"event_id":%q,"action_source":"other","user_data":{"em":["` + hash + `"]}}`,
		body:  `{"data":[%s]}`, seconds: time.Time.Unix,
	},
	platforms.TypeGA4: {
		url:  "/mp/collect?measurement_id=G-1&api_secret=token",
		body: "%s", seconds: time.Time.UnixMicro,
		event: `{"client_id":"1.2","user_id":"7","timestamp_micros":%d,"user_data":{"sha256_email_address":["` + hash +
			`"]},"events":[{"name":"purchase","params":{"value":1,"currency":"EUR","transaction_id":%q}}]}`,
	},
	platforms.TypeTikTok: {
		url: "/open_api/v1.3/event/track/", header: "Access-Token", value: "token",
		event: `{"event":"Lead","event_time":%d,"event_id":%q,"user":{"email":"` + hash + `"}}`,
		body:  `{"event_source":"web","event_source_id":"C1","data":[%s]}`, seconds: time.Time.Unix,
	},
	platforms.TypePinterest: {
		url: "/v5/ad_accounts/1/events", header: "Authorization", value: "Bearer token",
		event: `{"event_name":"lead","event_time":%d,"event_id":%q,"action_source":"web","user_data":{"em":["` + hash + `"]}}`,
		body:  `{"data":[%s]}`, seconds: time.Time.Unix,
	},
	platforms.TypeMixpanel: {
		url: "/import?strict=1&project_id=1", header: "Authorization",
		value: "Basic " + base64.StdEncoding.EncodeToString([]byte("weir:token")),
		event: `{"event":"lead","properties":{"time":%d,"$insert_id":%q,"distinct_id":"1.2"}}`,
		body:  `[%s]`, seconds: time.Time.UnixMilli,
	},
	platforms.TypeSnapchat: {
		url:   "/v3/" + snapPixel + "/events?access_token=token",
		event: `{"event_name":"SIGN_UP","event_time":%d,"event_id":%q,"action_source":"OFFLINE","user_data":{"em":["` + hash + `"]}}`,
		body:  `{"data":[%s]}`, seconds: time.Time.Unix,
	},
	platforms.TypeReddit: {
		url: "/api/v3/pixels/a2_1/conversion_events", header: "Authorization", value: "Bearer token",
		event: `{"event_at":%d,"metadata":{"conversion_id":%q},"action_source":"WEBSITE","type":{"tracking_type":"LEAD"},"user":{"email":"` + hash + `"}}`,
		body:  `{"data":{"events":[%s]}}`, seconds: time.Time.UnixMilli,
	},
	platforms.TypeMicrosoft: {
		url: "/v1/1/events", header: "Authorization", value: "Bearer token",
		event: `{"eventType":"custom","eventName":"generate_lead","eventTime":%d,"eventId":%q,"userData":{"em":"` + hash + `"}}`,
		body:  `{"data":[%s],"continueOnValidationError":true}`, seconds: time.Time.Unix,
	},
	platforms.TypeLinkedIn: {
		url: "/rest/conversionEvents", header: "Authorization", value: "Bearer token",
		further: http.Header{"Linkedin-Version": {"202609"}, "X-Restli-Protocol-Version": {"2.0.0"}, "X-Restli-Method": {"BATCH_CREATE"}},
		event: `{"conversion":"urn:lla:llaPartnerConversion:104012","conversionHappenedAt":%d,"eventId":%q,"user":{"userIds":[{"idType":"SHA256_EMAIL","idValue":"` +
			hash + `"}]}}`,
		body: `{"elements":[%s]}`, seconds: time.Time.UnixMilli,
	},
	platforms.TypeKlaviyo: {
		url: "/api/event-bulk-create-jobs", header: "Authorization", value: "Klaviyo-API-Key token",
		event: `{"type":"event-bulk-create","attributes":{"profile":{"data":{"type":"profile","attributes":{"external_id":"7"}}},"events":{"data":[` +
			`{"type":"event","attributes":{"metric":{"data":{"type":"metric","attributes":{"name":"lead"}}},"properties":{},"time":"%s","unique_id":%q}}]}}}`,
		body:    `{"data":{"type":"event-bulk-create-job","attributes":{"events-bulk-create":{"data":[%s]}}}}`,
		stamp:   func(at time.Time) string { return at.Format(time.RFC3339) },
		further: http.Header{"Content-Type": {"application/vnd.api+json"}, "Revision": {"2026-07-15"}},
	},
	platforms.TypeAmplitude: {
		url:   "/2/httpapi",
		event: `{"event_type":"lead","device_id":"1.2.3","time":%d,"insert_id":%q}`,
		body:  `{"api_key":"token","events":[%s]}`, seconds: time.Time.UnixMilli,
	},
	platforms.TypePostHog: {
		url:   "/batch/",
		event: `{"event":"lead","distinct_id":"1.2","properties":{"$lib":"weir","at":%d,"event_id":%q},"timestamp":"2026-11-20T12:00:00Z"}`,
		body:  `{"api_key":"project","batch":[%s]}`, seconds: time.Time.Unix,
	},
	platforms.TypeSegment: {
		url: "/v1/batch", header: "Authorization", value: "Basic " + base64.StdEncoding.EncodeToString([]byte("token:")),
		event: `{"type":"track","event":"Lead","properties":{"at":%d},"messageId":%q,"anonymousId":"1.2","timestamp":"2026-11-20T12:00:00Z",` +
			`"context":{"library":{"name":"weir"}}}`,
		body: `{"batch":[%s],"sentAt":"2026-11-20T12:00:00Z"}`, seconds: time.Time.Unix,
	},
	platforms.TypeOpenAI: {
		url: "/v1/events?pid=px-1", header: "Authorization", value: "Bearer token",
		event: `{"type":"lead_created","timestamp_ms":%d,"id":%q,"action_source":"other","user":{"emails_sha256":["` + hash + `"]},` +
			`"data":{"type":"customer_action"}}`,
		body: `{"validate_only":false,"events":[%s]}`, seconds: time.Time.UnixMilli,
	},
}

// render makes an event of the dialect.
func (d *dialect) render(at time.Time, id string) string {
	if d.stamp != nil {
		return fmt.Sprintf(d.event, d.stamp(at), id)
	}
	return fmt.Sprintf(d.event, d.seconds(at), id)
}

// params are so many further parameters of an event.
func params(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`,"p%d":%d`, i, i)
	}
	return list
}

// exchanged is an answer and what the fake says of the request.
type exchanged struct {
	Status    int
	Body      string
	Complaint string
	Refusals  []string
}

func newFake(t *testing.T, kind platforms.Type) (*Server, *httptest.Server) {
	t.Helper()
	fake, err := New(kind, []Account{account}, nil, func() time.Time { return now })
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

func send(t *testing.T, fake *Server, base, url, header, value, body string, further ...http.Header) exchanged {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if header != "" {
		request.Header.Set(header, value)
	}
	for _, more := range further {
		maps.Copy(request.Header, more)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	got := exchanged{Status: response.StatusCode, Body: string(text)}
	if receipts := fake.Receipts(); len(receipts) > 0 {
		last := receipts[len(receipts)-1]
		got.Complaint = last.Complaint
		for _, e := range last.Events {
			got.Refusals = append(got.Refusals, e.Refusal)
		}
	}
	return got
}

// Each row changes a good event, and says what the platform makes of it.
func TestFakesRefuseWhatThePlatformsRefuse(t *testing.T) {
	type row struct {
		old, new string
		status   int
		inBody   string
		refusal  string
	}
	meta := func(subcode string) string { return `"error_subcode":` + subcode }
	for kind, rows := range map[platforms.Type]map[string]row{
		platforms.TypeMeta: {
			"a good event":                   {"", "", 200, `"events_received":1`, ""},
			"a raw address in place of em":   {hash, "ada", 400, meta("2804019"), "em is no SHA-256"},
			"a hash in capitals":             {hash, strings.ToUpper(hash), 400, meta("2804019"), "em is no SHA-256"},
			"the hash of nothing":            {hash, ofEmpty, 400, meta("2804019"), "em is the hash of nothing"},
			"em that is no list":             {`["` + hash + `"]`, `"` + hash + `"`, 400, meta("2804019"), "em must be a list"},
			"a hash with Meta's appendix":    {hash, hash + ".AQYBAQAA", 200, `"events_received":1`, ""},
			"an event of eight days ago":     {"TIME", "-192h", 400, meta("2804003"), "too old"},
			"an event of the next hour":      {"TIME", "1h", 400, meta("2804003"), "in the future"},
			"a website event without URL":    {`"other"`, `"website"`, 400, meta("2804019"), "website events need"},
			"a first name alone":             {`"em"`, `"fn"`, 400, meta("2804050"), "not enough customer data"},
			"a purchase without value":       {`"Lead"`, `"Purchase"`, 400, meta("2804009"), "a Purchase needs value"},
			"an unknown action_source":       {`"other"`, `"shop"`, 400, meta("2804019"), "action_source must be valid"},
			"a last name in plain":           {`"em":`, `"ln":["ada"],"em":`, 400, meta("2804019"), "ln is no SHA-256"},
			"a city that is no list":         {`"em":`, `"ct":"` + hash + `","em":`, 400, meta("2804019"), "ct must be a list"},
			"a gender that Meta has not":     {`"em":`, `"ge":["` + metaNoGender + `"],"em":`, 400, meta("2804019"), "ge must be f or m"},
			"a member that user_data lacks":  {`"em":`, `"age":["` + hash + `"],"em":`, 400, meta("2804019"), "age is none"},
			"a click id of another form":     {`"em":`, `"fbc":"AbC","em":`, 400, meta("2804019"), "fbc must be a text of its form"},
			"a city and a country alone":     {`"em"`, `"country":["` + hash + `"],"ct"`, 400, meta("2804050"), "not enough customer data"},
			"a name with a city":             {`"em"`, `"fn":["` + hash + `"],"ct"`, 200, `"events_received":1`, ""},
			"an event of an app":             {`"other"`, `"app"`, 400, meta("2804019"), "need app_data"},
			"a sale in a shop":               {`"other"`, `"physical_store"`, 200, `"events_received":1`, ""},
			"limited data use without place": {`"user_data"`, `"data_processing_options":["LDU"],"user_data"`, 400, meta("2804019"), "need a country and a state"},
			"limited data use of Meta's":     {`"user_data"`, `"data_processing_options":["LDU"],"data_processing_options_country":0,"data_processing_options_state":0,"user_data"`, 200, `"events_received":1`, ""},
			"limited data use in California": {`"user_data"`, `"data_processing_options":["LDU"],"data_processing_options_country":1,"data_processing_options_state":1000,"user_data"`, 200, `"events_received":1`, ""},
			"limited data use in Germany":    {`"user_data"`, `"data_processing_options":["LDU"],"data_processing_options_country":49,"data_processing_options_state":0,"user_data"`, 400, meta("2804019"), "must be 0, or 1 and a state's code"},
			"an option that Meta has not":    {`"user_data"`, `"data_processing_options":["LDP"],"data_processing_options_country":0,"data_processing_options_state":0,"user_data"`, 400, meta("2804019"), "must be [] or LDU"},
			"no option":                      {`"user_data"`, `"data_processing_options":[],"user_data"`, 200, `"events_received":1`, ""},
			"a hash that has been forbidden": {hash, strings.Repeat("f", 64), 400, meta("2804019"), "was not normalised"},
		},
		platforms.TypeGA4: {
			"a good event":                  {"", "", 204, "", ""},
			"no client_id":                  {`"1.2"`, `""`, 204, "", "client_id must not be empty"},
			"an event of four days ago":     {"TIME", "-96h", 204, "", "timestamp_micros must be within the last 72 hours"},
			"a purchase without an id":      {`"transaction_id":"e-1"`, `"x":1`, 204, "", "transaction_id is required"},
			"a value without a currency":    {`"currency":"EUR",`, ``, 204, "", "currency is required with amounts"},
			"a value as text":               {`"value":1`, `"value":"$1"`, 204, "", "-"},
			"a name that Google keeps":      {`"purchase"`, `"session_start"`, 204, "", "is reserved"},
			"a name that is none":           {`"purchase"`, `"a b"`, 204, "", "must be a letter"},
			"an address in place of a hash": {hash, "ada", 204, "", "is no SHA-256"},
			"user_data without a user_id":   {`"user_id":"7",`, "", 204, "", "must come with a user_id"},
			"a click, which Google tells":   {`"purchase"`, `"click"`, 204, "", "is reserved"},
			"a member that there is not":    {`"user_id"`, `"colour":1,"user_id"`, 204, "", "-"},
			"an address that is none":       {`"user_id"`, `"ip_override":"ada","user_id"`, 204, "", "must be an IP address"},
			"a device and a user agent":     {`"user_id"`, `"device":{"language":"de"},"user_agent":"M","user_id"`, 204, "", "stands in the way of user_agent"},
			"a consent of another word":     {`"user_id"`, `"consent":{"ad_user_data":"granted"},"user_id"`, 204, "", "must be GRANTED or DENIED"},
			"hashes though denied":          {`"user_id"`, `"consent":{"ad_user_data":"DENIED"},"user_id"`, 204, "", "must be absent where ad_user_data is denied"},
			"hashes where granted":          {`"user_id"`, `"consent":{"ad_user_data":"GRANTED","ad_personalization":"DENIED"},"user_id"`, 204, "", ""},
			"a session that is no number":   {`"value":1`, `"value":1,"session_id":"a"`, 204, "", "session_id must be digits"},
			"a session's number":            {`"value":1`, `"value":1,"session_id":"17","engagement_time_msec":15`, 204, "", ""},
			"an engagement as text":         {`"value":1`, `"value":1,"engagement_time_msec":"1 s"`, 204, "", "-"},
			"a tax without a currency":      {`"value":1,"currency":"EUR"`, `"tax":1,"value":1`, 204, "", "currency is required"},
			"26 parameters":                 {`"value":1`, `"value":1` + strings.Join(params(23), ""), 204, "", "must be at most 25"},
			"25 parameters":                 {`"value":1`, `"value":1` + strings.Join(params(22), ""), 204, "", ""},
			"a parameter that Google keeps": {`"value":1`, `"value":1,"ga_x":1`, 204, "", "is reserved"},
			"a parameter that is a list":    {`"value":1`, `"value":1,"x":[1]`, 204, "", "must be a number, or a text"},
			"a parameter with a blank":      {`"value":1`, `"value":1,"a b":1`, 204, "", "must be a letter"},
			"a long parameter":              {`"value":1`, `"value":1,"x":"` + strings.Repeat("x", 101) + `"`, 204, "", "must be a number, or a text"},
		},
		platforms.TypeTikTok: {
			"a good event":                  {"", "", 200, `"code":0`, ""},
			"an address in place of email":  {hash, "ada", 200, `"code":40002`, "email is no SHA-256"},
			"a last name in plain":          {`"email"`, `"last_name":"ada","email"`, 200, `"code":40002`, "last_name is no SHA-256"},
			"a country in capitals":         {`"email"`, `"country":"DE","email"`, 200, `"code":40002`, "two lower-case letters"},
			"a country":                     {`"email"`, `"country":"de","email"`, 200, `"code":0`, ""},
			"a list of addresses":           {`"` + hash + `"`, `["` + hash + `","` + hash + `"]`, 200, `"code":0`, ""},
			"a bad hash in a list":          {`"` + hash + `"`, `["` + hash + `","ada"]`, 200, `"code":40002`, "email is no SHA-256"},
			"a member that it has not":      {`"email"`, `"city_hash":"x","email"`, 200, `"code":40002`, "-"},
			"no identifier":                 {`"email":"` + hash + `"`, "", 200, `"code":40002`, "no identifier"},
			"an event of eight days ago":    {"TIME", "-192h", 200, `"code":40002`, "too old"},
			"a purchase without value":      {`"Lead"`, `"Purchase"`, 200, `"code":40002`, "a Purchase needs value"},
			"a content_id that is a number": {`"user"`, `"properties":{"contents":[{"content_id":1,"quantity":1}]},"user"`, 200, `"code":40002`, "-"},
			"limited data use":              {`"user"`, `"limited_data_use":true,"user"`, 200, `"code":0`, ""},
			"limited data use as a text":    {`"user"`, `"limited_data_use":"true","user"`, 200, `"code":40002`, "-"},
			"a currency it does not know":   {`"user"`, `"properties":{"value":1,"currency":"XOF"},"user"`, 200, `"code":40002`, "the currency is not supported"},
		},
		platforms.TypePinterest: {
			"a good event":               {"", "", 200, `"num_events_processed":1`, ""},
			"an address in place of em":  {hash, "ada", 422, `"status":"failed"`, "em is no SHA-256"},
			"em that is no list":         {`["` + hash + `"]`, `"` + hash + `"`, 400, `"code":4196`, "-"},
			"a phone number alone":       {`"em"`, `"ph"`, 422, `"status":"failed"`, "user_data needs em"},
			"a city in plain":            {`"em"`, `"ct":["ada"],"em"`, 422, `"status":"failed"`, "ct is no SHA-256"},
			"a gender that is no list":   {`"em"`, `"ge":"` + hash + `","em"`, 400, `"code":4196`, "-"},
			"a language with a region":   {`"action_source"`, `"language":"de-CH","action_source"`, 422, `"status":"failed"`, "language must be two letters"},
			"a sale in a shop":           {`"web"`, `"offline"`, 200, `"num_events_processed":1`, ""},
			"a source that it has not":   {`"web"`, `"physical_store"`, 422, `"status":"failed"`, "action_source must be valid"},
			"a name that is none":        {`"lead"`, `"Lead"`, 422, `"status":"failed"`, "event_name is none"},
			"an unknown member":          {`"action_source"`, `"colour":1,"action_source"`, 400, `"code":4196`, "-"},
			"limited data processing":    {`"user_data"`, `"opt_out":true,"custom_data":{"opt_out_type":"LDP"},"user_data"`, 200, `"num_events_processed":1`, ""},
			"an opt-out of what":         {`"user_data"`, `"opt_out":true,"custom_data":{"opt_out_type":"LDU"},"user_data"`, 422, `"status":"failed"`, "opt_out_type must be LDP"},
			"an opt-out that is none":    {`"user_data"`, `"custom_data":{"opt_out_type":"LDP"},"user_data"`, 422, `"status":"failed"`, "opt_out_type needs opt_out"},
			"a value that is a number":   {`"user_data"`, `"custom_data":{"value":1},"user_data"`, 400, `"code":4196`, "-"},
			"an event of eight days ago": {"TIME", "-192h", 422, `"status":"failed"`, "too old"},
		},
		platforms.TypeMixpanel: {
			"a good event":                  {"", "", 200, `"num_records_imported":1`, ""},
			"an id with a space":            {`"e-1"`, `"e 1"`, 400, `"properties.$insert_id"`, "must be 1 to 36"},
			"an event of 1970":              {"TIME", "-500000h", 400, `"properties.time"`, "must be a time since 1971"},
			"an event of tomorrow":          {"TIME", "24h", 400, `"properties.time"`, "must be a time since 1971"},
			"a placeholder for distinct_id": {`"1.2"`, `"Anonymous"`, 400, `"properties.distinct_id"`, "must be an id"},
			"a name that Mixpanel keeps":    {`"distinct_id"`, `"$x":1,"distinct_id"`, 400, `"properties.$x"`, "is a name that Mixpanel keeps"},
			"a property without a value":    {`"distinct_id"`, `"x":null,"distinct_id"`, 400, `"properties.x"`, "must have a value"},
			"a placeholder for $user_id":    {`"distinct_id"`, `"$user_id":"null","distinct_id"`, 400, `"properties.$user_id"`, "must be an id"},
			"nobody":                        {`"1.2"`, `""`, 200, `"num_records_imported":1`, ""},
		},
		platforms.TypeSnapchat: {
			"a good event":                   {"", "", 200, `"status":"VALID"`, ""},
			"an address in place of em":      {hash, "ada", 400, `"event":0`, "em is no SHA-256"},
			"em that is no list":             {`["` + hash + `"]`, `"` + hash + `"`, 400, `"status":"INVALID"`, "-"},
			"a phone number alone":           {`"em"`, `"ph"`, 200, `"status":"VALID"`, ""},
			"a name alone":                   {`"em"`, `"fn"`, 400, `"event":0`, "user_data needs em"},
			"an IP address alone":            {`"em":["` + hash + `"]`, `"client_ip_address":"203.0.113.7"`, 400, `"event":0`, "user_data needs em"},
			"an IP address and a user agent": {`"em":["` + hash + `"]`, `"client_ip_address":"203.0.113.7","client_user_agent":"M"`, 200, `"status":"VALID"`, ""},
			"a city in plain":                {`"em"`, `"ct":["ada"],"em"`, 400, `"event":0`, "ct is no SHA-256"},
			"an account in plain":            {`"em"`, `"external_id":["4711"],"em"`, 400, `"event":0`, "external_id is no SHA-256"},
			"a name that is none":            {`"SIGN_UP"`, `"LEAD"`, 400, `"event":0`, "event_name is none"},
			"a name in lower case":           {`"SIGN_UP"`, `"sign_up"`, 400, `"event":0`, "event_name is none"},
			"a custom event":                 {`"SIGN_UP"`, `"CUSTOM_EVENT_1"`, 200, `"status":"VALID"`, ""},
			"an event of an app":             {`"OFFLINE"`, `"MOBILE_APP"`, 400, `"event":0`, "action_source must be valid"},
			"an event of the web":            {`"OFFLINE"`, `"WEB"`, 400, `"event":0`, "needs event_source_url"},
			"an event of a page":             {`"OFFLINE"`, `"WEB","event_source_url":"https://shop.example/"`, 200, `"status":"VALID"`, ""},
			"a purchase without value":       {`"SIGN_UP"`, `"PURCHASE"`, 400, `"event":0`, "a PURCHASE needs value"},
			"a purchase":                     {`"SIGN_UP"`, `"PURCHASE","custom_data":{"value":1.5,"currency":"EUR"}`, 200, `"status":"VALID"`, ""},
			"a value as text":                {`"user_data"`, `"custom_data":{"value":"1.5","currency":"EUR"},"user_data"`, 400, `"status":"INVALID"`, "-"},
			"a currency it does not know":    {`"user_data"`, `"custom_data":{"value":1,"currency":"XAF"},"user_data"`, 400, `"event":0`, "the currency is not supported"},
			"an item":                        {`"user_data"`, `"custom_data":{"contents":[{"id":"a","quantity":"2","item_price":"1.5","brand":"b"}]},"user_data"`, 200, `"status":"VALID"`, ""},
			"an item without an id":          {`"user_data"`, `"custom_data":{"contents":[{"quantity":"1"}]},"user_data"`, 400, `"event":0`, "contents must have an id"},
			"a quantity that is a number":    {`"user_data"`, `"custom_data":{"contents":[{"id":"a","quantity":1}]},"user_data"`, 400, `"status":"INVALID"`, "-"},
			"limited data use":               {`"user_data"`, `"data_processing_options":["LDU"],"user_data"`, 200, `"status":"VALID"`, ""},
			"an option that it has not":      {`"user_data"`, `"data_processing_options":["LDP"],"user_data"`, 400, `"event":0`, "must be LDU"},
			"an unknown member":              {`"user_data"`, `"colour":1,"user_data"`, 400, `"status":"INVALID"`, "-"},
			"an event of 38 days ago":        {"TIME", "-912h", 400, `"event":0`, "too old"},
			"an event of the next hour":      {"TIME", "1h", 400, `"event":0`, "in the future"},
			"a hash that has been forbidden": {hash, strings.Repeat("f", 64), 400, `"event":0`, "was not normalised"},
		},
		platforms.TypeReddit: {
			"a good event":                     {"", "", 200, "Successfully processed 1 conversion events.", ""},
			"an address in place of email":     {hash, "ada", 400, "events[0].user", "email is no SHA-256"},
			"email that is a list":             {`"` + hash + `"`, `["` + hash + `"]`, 400, "JSON error", "-"},
			"a phone number in plain":          {`"email"`, `"phone_number":"0155","email"`, 400, "events[0].user", "phone_number is no SHA-256"},
			"an account in plain":              {`"email"`, `"external_id":"4711","email"`, 400, "events[0].user", "external_id is no SHA-256"},
			"an address that is none":          {`"email"`, `"ip_address":"ada","email"`, 400, "events[0].user", "must be an IP address"},
			"nobody":                           {`"email":"` + hash + `"`, ``, 400, "events[0].user", "needs a click_id or a match key"},
			"a click alone":                    {`"user":{"email":"` + hash + `"}`, `"click_id":"c"`, 200, "Successfully", ""},
			"a kind that is none":              {`"LEAD"`, `"Lead"`, 400, "events[0].type", "tracking_type is none"},
			"a custom event":                   {`"LEAD"`, `"CUSTOM","custom_event_name":"Wheel"`, 200, "Successfully", ""},
			"a custom event without a name":    {`"LEAD"`, `"CUSTOM"`, 400, "events[0].type", "belongs to CUSTOM"},
			"a standard event with a name":     {`"LEAD"`, `"LEAD","custom_event_name":"Wheel"`, 400, "events[0].type", "belongs to CUSTOM"},
			"a name of 65 characters":          {`"LEAD"`, `"CUSTOM","custom_event_name":"` + strings.Repeat("ü", 65) + `"`, 400, "events[0].type", "at most 64"},
			"a source in lower case":           {`"WEBSITE"`, `"website"`, 400, "events[0].action_source", "invalid action_source"},
			"a page of an app":                 {`"WEBSITE"`, `"APP","event_source_url":"https://shop.example/"`, 400, "events[0].action_source", "belongs to events of a website"},
			"a store with a device":            {`"WEBSITE","type":{"tracking_type":"LEAD"},"user":{`, `"PHYSICAL_STORE","type":{"tracking_type":"LEAD"},"user":{"ip_address":"203.0.113.7",`, 400, "events[0].action_source", "nothing of a device"},
			"a store":                          {`"WEBSITE"`, `"PHYSICAL_STORE"`, 200, "Successfully", ""},
			"a value of a lead":                {`"metadata":{`, `"metadata":{"value":1.5,"currency":"EUR",`, 200, "Successfully", ""},
			"a value without a currency":       {`"metadata":{`, `"metadata":{"value":1.5,`, 400, "events[0].metadata", "need each other"},
			"a currency without a value":       {`"metadata":{`, `"metadata":{"currency":"EUR",`, 400, "events[0].metadata", "need each other"},
			"a currency in lower case":         {`"metadata":{`, `"metadata":{"value":1.5,"currency":"eur",`, 400, "events[0].metadata", "three capitals"},
			"a value as text":                  {`"metadata":{`, `"metadata":{"value":"1.5","currency":"EUR",`, 400, "JSON error", "-"},
			"a number of items of a lead":      {`"metadata":{`, `"metadata":{"item_count":1,`, 400, "events[0].metadata", "has no item_count"},
			"a product without an id":          {`"metadata":{`, `"metadata":{"products":[{"quantity":1}],`, 400, "events[0].metadata", "products must have an id"},
			"no conversion_id":                 {`"e-1"`, `""`, 400, "events[0].metadata", "conversion_id must be valid"},
			"limited data use":                 {`"email"`, `"data_processing_options":{"modes":["LDU"],"country":"US","region":"US-CA"},"email"`, 200, "Successfully", ""},
			"limited data use nowhere":         {`"email"`, `"data_processing_options":{"modes":["LDU"]},"email"`, 400, "events[0].user", "needs a country"},
			"a mode that it has not":           {`"email"`, `"data_processing_options":{"modes":["LDP"]},"email"`, 400, "events[0].user", "modes must be LDU"},
			"a member of the version before":   {`"type"`, `"event_type"`, 400, "JSON error", "-"},
			"an event of eight days ago":       {"TIME", "-192h", 400, "events[0].event_at", "too old"},
			"an event of the next six minutes": {"TIME", "6m", 400, "events[0].event_at", "in the future"},
			"a hash that has been forbidden":   {hash, strings.Repeat("f", 64), 400, "events[0].user", "was not normalised"},
		},
		platforms.TypeMicrosoft: {
			"a good event":                      {"", "", 200, `"eventsReceived":1`, ""},
			"an address in place of em":         {hash, "ada", 400, `"propertyName":"userData"`, "em is no SHA-256"},
			"a hash in capitals":                {hash, strings.ToUpper(hash), 400, `"propertyName":"userData"`, "em is no SHA-256"},
			"a phone number alone":              {`"em"`, `"ph"`, 200, `"eventsReceived":1`, ""},
			"a phone number in plain":           {`"em":`, `"ph":"0155","em":`, 400, `"index":0`, "ph is no SHA-256"},
			"an account's id in plain":          {`"em":`, `"externalId":"customer-7","em":`, 400, `"index":0`, "externalId is no SHA-256"},
			"an address and a user agent alone": {`"em":"` + hash + `"`, `"clientIpAddress":"203.0.113.7","clientUserAgent":"M"`, 400, `"index":0`, "userData needs anonymousId"},
			"a browser's id alone":              {`"em":"` + hash + `"`, `"anonymousId":"1.2"`, 200, `"eventsReceived":1`, ""},
			"a click id without hyphens":        {`"em":`, `"msclkid":"` + hash[:32] + `","em":`, 400, `"index":0`, "msclkid must be a UUID"},
			"a click id":                        {`"em":`, `"msclkid":"0cc175b9-c0f1-46b6-831c-399e26977266","em":`, 200, `"eventsReceived":1`, ""},
			"an IP address that is none":        {`"em":`, `"clientIpAddress":"ada","em":`, 400, `"index":0`, "clientIpAddress must be"},
			"an event of eight days ago":        {"TIME", "-192h", 400, `"propertyName":"eventTime"`, "too old"},
			"an event of the next hour":         {"TIME", "1h", 400, `"propertyName":"eventTime"`, "in the future"},
			"a type that there is not":          {`"custom"`, `"page"`, 400, `"propertyName":"eventType"`, "eventType must be"},
			"a custom event without a name":     {`"generate_lead"`, `""`, 400, `"propertyName":"eventName"`, "needs an eventName"},
			"a page load of no page":            {`"custom"`, `"pageLoad"`, 400, `"propertyName":"eventSourceUrl"`, "needs an eventSourceUrl"},
			"a page load":                       {`"custom"`, `"pageLoad","eventSourceUrl":"https://shop.example/"`, 200, `"eventsReceived":1`, ""},
			"a page that is no URL":             {`"userData"`, `"eventSourceUrl":"/cart","userData"`, 400, `"index":0`, "eventSourceUrl must be a URL"},
			"a consent as a word":               {`"userData"`, `"adStorageConsent":"granted","userData"`, 400, `"propertyName":"adStorageConsent"`, "must be G or D"},
			"a consent that was denied":         {`"userData"`, `"adStorageConsent":"D","userData"`, 200, `"eventsReceived":1`, ""},
			"a value as text":                   {`"userData"`, `"customData":{"value":"1"},"userData"`, 400, `"code":"ValidationError"`, "-"},
			"a value without a currency":        {`"userData"`, `"customData":{"value":1},"userData"`, 400, `"index":0`, "a value needs a currency"},
			"a currency in small letters":       {`"userData"`, `"customData":{"currency":"eur"},"userData"`, 400, `"index":0`, "three capital letters"},
			"a page type that there is not":     {`"userData"`, `"customData":{"pageType":"shop"},"userData"`, 400, `"index":0`, "pageType is none"},
			"an item of which there is none":    {`"userData"`, `"customData":{"items":[{"id":"a","quantity":0}]},"userData"`, 400, `"index":0`, "items need"},
			"a quantity of a half":              {`"userData"`, `"customData":{"items":[{"id":"a","quantity":0.5}]},"userData"`, 400, `"code":"ValidationError"`, "-"},
			"a member that there is not":        {`"userData"`, `"colour":1,"userData"`, 400, `"code":"ValidationError"`, "-"},
		},
		platforms.TypeLinkedIn: {
			"a good event":                   {"", "", 200, `{"elements":[{"status":201}]}`, ""},
			"an address in place of a hash":  {hash, "ada", 422, "Index: 0, ERROR ::", "SHA256_EMAIL is no SHA-256"},
			"the hash of nothing":            {hash, ofEmpty, 422, "Index: 0, ERROR ::", "SHA256_EMAIL is the hash of nothing"},
			"an id of a type that is none":   {"SHA256_EMAIL", "ORACLE_MOAT_ID", 422, "Index: 0, ERROR ::", "idType is none of LinkedIn's"},
			"a plain address":                {"SHA256_EMAIL", "EMAIL", 422, "Index: 0, ERROR ::", "idType is none of LinkedIn's"},
			"a click id":                     {"SHA256_EMAIL", "LINKEDIN_FIRST_PARTY_ADS_TRACKING_UUID", 200, `"status":201`, ""},
			"an id that is empty":            {hash, "", 422, "Index: 0, ERROR ::", "idValue must not be empty"},
			"no list of ids":                 {`"userIds":[{"idType":"SHA256_EMAIL","idValue":"` + hash + `"}]`, `"externalIds":["` + hash + `"]`, 422, "Index: 0, ERROR ::", "userIds is required"},
			"an id of the customer's alone":  {`[{"idType":"SHA256_EMAIL","idValue":"` + hash + `"}]`, `[],"externalIds":["` + hash + `"]`, 200, `"status":201`, ""},
			"two ids of the customer's":      {`"user":{`, `"user":{"externalIds":["` + hash + `","` + hash + `"],`, 422, "Index: 0, ERROR ::", "externalIds holds one"},
			"an id of the customer's, plain": {`"user":{`, `"user":{"externalIds":["customer-7"],`, 422, "Index: 0, ERROR ::", "externalIds is no SHA-256"},
			"an IP address alone":            {"SHA256_EMAIL", "SHA256_IP_ADDRESS", 422, "Index: 0, ERROR ::", "beside the IP address"},
			"names in plain":                 {`"user":{`, `"user":{"userInfo":{"firstName":"ada","lastName":"l"},`, 422, "Index: 0, ERROR ::", "not of LinkedIn's form"},
			"hashed names":                   {`"user":{`, `"user":{"userInfo":{"hashedFirstName":"` + hash + `","hashedLastName":"` + hash + `","countryCode":"CH"},`, 200, `"status":201`, ""},
			"a first name alone":             {`"user":{`, `"user":{"userInfo":{"hashedFirstName":"` + hash + `"},`, 422, "Index: 0, ERROR ::", "userInfo needs both names"},
			"a country in small letters":     {`"user":{`, `"user":{"userInfo":{"hashedFirstName":"` + hash + `","hashedLastName":"` + hash + `","countryCode":"ch"},`, 422, "Index: 0, ERROR ::", "countryCode must be"},
			"a time in seconds":              {"TIME", "-490000h", 422, "Index: 0, ERROR ::", "too old"},
			"an event of 91 days ago":        {"TIME", "-2184h", 422, "Index: 0, ERROR ::", "too old"},
			"an event of the next hour":      {"TIME", "1h", 422, "Index: 0, ERROR ::", "in the future"},
			"a rule's id without its URN":    {"urn:lla:llaPartnerConversion:104012", "104012", 422, "Index: 0, ERROR ::", "must be the URN of a rule"},
			"a rule that the account lacks":  {":104012", ":104013", 400, "indices [0] (0-indexed)", "no conversion rule of that id"},
			"a value":                        {`"user":{`, `"conversionValue":{"currencyCode":"EUR","amount":"1.5"},"user":{`, 200, `"status":201`, ""},
			"a value that is a number":       {`"user":{`, `"conversionValue":{"currencyCode":"EUR","amount":1.5},"user":{`, 422, "Index: 0, ERROR ::", "not of LinkedIn's form"},
			"a currency without an amount":   {`"user":{`, `"conversionValue":{"currencyCode":"EUR"},"user":{`, 422, "Index: 0, ERROR ::", "amount must be"},
			"a currency in small letters":    {`"user":{`, `"conversionValue":{"currencyCode":"eur","amount":"1"},"user":{`, 422, "Index: 0, ERROR ::", "currencyCode must be"},
			"a member that there is not":     {`"user":{`, `"colour":1,"user":{`, 422, "Index: 0, ERROR ::", "not of LinkedIn's form"},
			"a body that is none":            {`"elements"`, `"data"`, 400, `"code":"ILLEGAL_ARGUMENT"`, "-"},
		},
		platforms.TypeKlaviyo: {
			"a good event":                      {"", "", 202, "", ""},
			"a value in a currency":             {`"unique_id"`, `"value":1.5,"value_currency":"EUR","unique_id"`, 202, "", ""},
			"a value that is a text":            {`"unique_id"`, `"value":"1.5","unique_id"`, 400, `"code":"invalid"`, "-"},
			"a currency that is none":           {`"unique_id"`, `"value_currency":"euro","unique_id"`, 400, `data/0/attributes/events/data/0/attributes/value_currency"`, "value_currency must be"},
			"an event of 1989":                  {"TIME", "-326000h", 400, `data/0/attributes/events/data/0/attributes/time"`, "time must be after 1990"},
			"an event of the year after next":   {"TIME", "10000h", 400, `attributes/time"`, "time must be after 1990"},
			"a time that is none":               {"2026-11-20T12:00:00Z", "1795176000", 400, `attributes/time"`, "time must be after 1990"},
			"nobody":                            {`"external_id":"7"`, ``, 400, `data/0/attributes/profile/data/attributes"`, "a profile must have an identifier"},
			"a visitor of a message":            {`"external_id":"7"`, `"_kx":"a.b"`, 202, "", ""},
			"a browser":                         {`"external_id":"7"`, `"anonymous_id":"1.2"`, 202, "", ""},
			"a hash in place of an address":     {`"external_id":"7"`, `"email_sha256":"` + hash + `"`, 400, `"code":"invalid"`, "-"},
			"an account of 256 characters":      {`"7"`, `"` + strings.Repeat("7", 256) + `"`, 400, `attributes/external_id"`, "at most 255 characters"},
			"a metric without a name":           {`"lead"`, `""`, 400, `attributes/metric/data/attributes/name"`, "a metric's name"},
			"a metric's name of 128 characters": {`"lead"`, `"` + strings.Repeat("x", 128) + `"`, 400, `attributes/name"`, "a metric's name"},
			"no properties":                     {`"properties":{},`, ``, 400, `attributes/properties"`, "properties must be there"},
			"400 properties":                    {`"properties":{`, `"properties":{"x":1` + strings.Join(params(399), ""), 202, "", ""},
			"401 properties":                    {`"properties":{`, `"properties":{"x":1` + strings.Join(params(400), ""), 400, `attributes/properties"`, "at most 400"},
			"no id":                             {`"e-1"`, `""`, 400, `attributes/unique_id"`, "unique_id must be there"},
			"a member that Klaviyo has not":     {`"unique_id"`, `"colour":1,"unique_id"`, 400, `"code":"invalid"`, "-"},
			"an object of another type":         {`"event-bulk-create"`, `"event"`, 400, `"code":"invalid"`, "-"},
		},
		platforms.TypeAmplitude: {
			"a good event":                     {"", "", 200, `"events_ingested":1`, ""},
			"a device of four characters":      {`"1.2.3"`, `"1.2."`, 400, `"events_with_missing_fields":{"user_id":[0]}`, "user_id or device_id is required"},
			"a device of one, with the option": {`{"api_key"`, `{"options":{"min_id_length":1},"api_key"`, 200, `"events_ingested":1`, ""},
			"a device that is none":            {`"1.2.3"`, `"lmy47d"`, 400, `"events_with_invalid_fields":{"device_id":[0]}`, "device_id must be a device's"},
			"an account that is nobody's":      {`"time"`, `"user_id":"Anonymous","time"`, 400, `"user_id":[0]`, "user_id must be somebody's"},
			"no name":                          {`"lead"`, `""`, 400, `"events_with_missing_fields":{"event_type":[0]}`, "event_type is required"},
			"a name of Amplitude's":            {`"lead"`, `"[Amplitude] Revenue"`, 400, `"event_type":[0]`, "none of Amplitude's own"},
			"a name that merges people":        {`"lead"`, `"$identify"`, 400, `"event_type":[0]`, "none of Amplitude's own"},
			"a time in seconds":                {"1795176000000", "1795176000", 400, `"time":[0]`, "time must be in milliseconds"},
			"a time as text":                   {"1795176000000", `"2026-11-20T12:00:00Z"`, 400, "Invalid JSON request body", "-"},
			"no id":                            {`"e-1"`, `""`, 400, `"insert_id":[0]`, "insert_id must be there"},
			"money":                            {`"time"`, `"revenue":-1.5,"revenueType":"Refund","currency":"EUR","time"`, 200, `"events_ingested":1`, ""},
			"money as text":                    {`"time"`, `"revenue":"1.5","time"`, 400, "Invalid JSON request body", "-"},
			"a kind of money without money":    {`"time"`, `"revenueType":"Refund","time"`, 400, `"revenueType":[0]`, "revenueType needs revenue"},
			"a currency that is none":          {`"time"`, `"revenue":1,"currency":"euro","time"`, 400, `"currency":[0]`, "currency must be"},
			"properties that are a list":       {`"time"`, `"event_properties":[1],"time"`, 400, `"event_properties":[0]`, "must be an object"},
			"a member that Weir has not":       {`"time"`, `"colour":1,"time"`, 400, "Invalid JSON request body", "-"},
			"no key":                           {`"api_key":"token",`, ``, 400, `"missing_field":"api_key"`, "-"},
		},
		platforms.TypePostHog: {
			"a good event":                       {"", "", 200, `"status":"Ok"`, ""},
			"no name":                            {`"lead"`, `""`, 400, "empty event name", "empty event name"},
			"no distinct_id":                     {`"distinct_id":"1.2",`, "", 400, "without a distinct_id", "without a distinct_id"},
			"a blank distinct_id":                {`"1.2"`, `" "`, 400, "without a distinct_id", "without a distinct_id"},
			"a placeholder for distinct_id":      {`"1.2"`, `"Guest"`, 400, "", "merges nobody by"},
			"a distinct_id that would be cut":    {`"1.2"`, `"` + strings.Repeat("x", 201) + `"`, 400, "", "longer than 200"},
			"a uuid that is none":                {`"timestamp"`, `"uuid":"e-1","timestamp"`, 400, "failed to parse request", "the uuid is none"},
			"a time that is none":                {`2026-11-20T12`, `20 November 12`, 400, "", "timestamp must be"},
			"an event of the day after tomorrow": {`2026-11-20T12`, `2026-11-22T12`, 400, "", "timestamp must be"},
			"a flag that is a text":              {`"$lib"`, `"$process_person_profile":"false","$lib"`, 400, "", "must be true or false"},
			"a session that is no UUID":          {`"$lib"`, `"$session_id":"17","$lib"`, 400, "", "must be a UUID of version 7"},
			"a session's UUID":                   {`"$lib"`, `"$session_id":"019a9f3c-7a00-7000-8000-000000000001","$lib"`, 200, `"status":"Ok"`, ""},
			"properties of the person":           {`"$lib"`, `"$set":{"a":1},"$lib"`, 400, "", "none that Weir may set"},
			"an address that is a number":        {`"$lib"`, `"$ip":1,"$lib"`, 400, "", "must be a text"},
			"an event of a megabyte":             {`"$lib"`, `"x":"` + strings.Repeat("x", 1<<20) + `","$lib"`, 400, "maximum event size exceeded", "maximum event size exceeded"},
			"properties that are a list":         {`"properties":{`, `"properties":[],"x":{`, 400, "failed to parse request", "-"},
		},
		platforms.TypeSegment: {
			"a good event":                 {"", "", 200, `"success":true`, ""},
			"no name":                      {`"Lead"`, `""`, 200, `"success":true`, "needs an event"},
			"a call that it has not":       {`"track"`, `"purchase"`, 200, `"success":true`, "type must be"},
			"nobody":                       {`"anonymousId":"1.2",`, "", 200, `"success":true`, "no_user_anon_id"},
			"an id of 100 characters":      {`"e-1"`, `"` + strings.Repeat("x", 100) + `"`, 200, `"success":true`, "fewer than 100"},
			"a time that is none":          {`"2026-11-20T12:00:00Z","context"`, `"now","context"`, 200, `"success":true`, "timestamp must be"},
			"a revenue that is a text":     {`"Lead","properties":{`, `"Order Completed","properties":{"revenue":"$1",`, 200, `"success":true`, "revenue must be a number"},
			"products that are no list":    {`"Lead","properties":{`, `"Order Completed","properties":{"products":{},`, 200, `"success":true`, "products must be a list"},
			"a library without a name":     {`"weir"`, `""`, 200, `"success":true`, "must have a name"},
			"an event of 32 KB":            {`"at"`, `"x":"` + strings.Repeat("x", 32<<10) + `","at"`, 400, `"success":false`, "-"},
			"consent that is a text":       {`"library"`, `"consent":{"categoryPreferences":{"ads":"no"}},"library"`, 200, `"success":true`, "not of the platform's form"},
			"consent by category":          {`"library"`, `"consent":{"categoryPreferences":{"ads":false}},"library"`, 200, `"success":true`, ""},
			"a batch that is no list":      {`"batch":[`, `"messages":[`, 400, `"success":false`, "-"},
			"a member that messages lack":  {`"messageId"`, `"colour":1,"messageId"`, 200, `"success":true`, "not of the platform's form"},
			"a time of sending that is no": {`"sentAt":"2026`, `"sentAt":"x2026`, 200, `"success":true`, ""},
		},
		platforms.TypeOpenAI: {
			"a good event":                   {"", "", 200, `{}`, ""},
			"an address in place of a hash":  {hash, "ada", 400, "emails_sha256 is no SHA-256", "emails_sha256 is no SHA-256"},
			"a hash that is no list":         {`["` + hash + `"]`, `"` + hash + `"`, 400, `"invalid_request_error"`, "-"},
			"a type that it has not":         {`"lead_created"`, `"lead"`, 400, "events[0]: type", "type is none"},
			"data of another shape":          {`"customer_action"`, `"contents"`, 400, "data.type must be", "data.type must be"},
			"a custom event without a name":  {`"lead_created"`, `"custom"`, 400, "data.type must be", "data.type must be"},
			"a name of an event of its own":  {`"id"`, `"custom_event_name":"x","id"`, 400, "goes with the type custom", "goes with the type custom"},
			"the web without a page":         {`"other"`, `"web"`, 400, "source_url is required", "source_url is required"},
			"the web with a page":            {`"action_source":"other"`, `"action_source":"web","source_url":"https://shop.example/"`, 200, `{}`, ""},
			"a source that it has not":       {`"other"`, `"app"`, 400, "action_source is none", "action_source is none"},
			"an event of eight days ago":     {"TIME", "-192h", 400, "too old", "too old"},
			"an event of the next hour":      {"TIME", "1h", 400, "in the future", "in the future"},
			"an amount without a currency":   {`"data":{`, `"data":{"amount":100,`, 400, "needs a currency", "needs a currency"},
			"an amount with cents":           {`"data":{`, `"data":{"amount":1.5,"currency":"EUR",`, 400, `"invalid_request_error"`, "-"},
			"an amount and its currency":     {`"data":{`, `"data":{"amount":100,"currency":"EUR",`, 200, `{}`, ""},
			"a currency alone":               {`"data":{`, `"data":{"currency":"EUR",`, 400, "needs an amount", "needs an amount"},
			"items of what has none":         {`"data":{`, `"data":{"contents":[{"id":"a"}],`, 400, "contents are none of", "contents are none of"},
			"nothing that tells whose it is": {`"emails_sha256":["` + hash + `"]`, `"user_agent":"M"`, 400, "nothing tells whose", "nothing tells whose"},
			"a click alone":                  {`"user":{"emails_sha256":["` + hash + `"]}`, `"oppref":"op_1"`, 200, `{}`, ""},
			"a country in small letters":     {`"emails_sha256"`, `"countries":["de"],"emails_sha256"`, 400, "two capital letters", "two capital letters"},
			"a member that there is not":     {`"action_source"`, `"colour":1,"action_source"`, 400, `"invalid_request_error"`, "-"},
			"an opt-out":                     {`"action_source"`, `"opt_out":true,"action_source"`, 200, `{}`, ""},
			"an address that is none":        {`"emails_sha256"`, `"ip_address":"1.2","emails_sha256"`, 400, "ip_address must be one", "ip_address must be one"},
			"a list of the member of old":    {`"emails_sha256"`, `"email_sha256"`, 400, `"invalid_request_error"`, "-"},
			"the hash of nothing":            {hash, ofEmpty, 400, "is the hash of nothing", "is the hash of nothing"},
			"a hash that has been forbidden": {hash, strings.Repeat("f", 64), 400, "was not normalised", "was not normalised"},
		},
	} {
		for name, row := range rows {
			t.Run(string(kind)+"/"+name, func(t *testing.T) {
				fake, server := newFake(t, kind)
				fake.Forbid(strings.Repeat("f", 64))
				d, at, old := dialects[kind], now, row.old
				if old == "TIME" {
					shift, err := time.ParseDuration(row.new)
					if err != nil {
						t.Fatal(err)
					}
					at, old = now.Add(shift), ""
				}
				body := fmt.Sprintf(d.body, d.render(at, "e-1"))
				if old != "" {
					if !strings.Contains(body, old) {
						t.Fatalf("%s is not in %s", old, body)
					}
					body = strings.Replace(body, old, row.new, 1)
				}
				got := send(t, fake, server.URL, d.url, d.header, d.value, body, d.further)
				if got.Status != row.status || !strings.Contains(got.Body, row.inBody) {
					t.Errorf("got %d %s, want %d with %s", got.Status, got.Body, row.status, row.inBody)
				}
				switch {
				case row.refusal == "-": // the body as a whole
					if got.Complaint == "" {
						t.Error("the fake does not complain of the body")
					}
				case (row.refusal == "") != (strings.Join(got.Refusals, "") == "") || !strings.Contains(strings.Join(got.Refusals, ""), row.refusal):
					t.Errorf("got refusals %q, want %q", got.Refusals, row.refusal)
				}
			})
		}
	}
}

// A bad event among good ones: all are refused, or it alone.
func TestFakesRefuseAsManyAsThePlatformsDo(t *testing.T) {
	for kind, want := range map[platforms.Type]map[string]int{
		platforms.TypeMeta:      {},
		platforms.TypeTikTok:    {},
		platforms.TypePinterest: {"e-1": 1, "e-3": 1},
		platforms.TypeMixpanel:  {"e-1": 1, "e-3": 1},
		platforms.TypeSnapchat:  {},
		platforms.TypeReddit:    {},
		platforms.TypeMicrosoft: {"e-1": 1, "e-3": 1},
		platforms.TypeLinkedIn:  {},
		platforms.TypeKlaviyo:   {},
		platforms.TypeAmplitude: {},
		platforms.TypePostHog:   {},
		platforms.TypeSegment:   {"e-1": 1, "e-3": 1},
		platforms.TypeOpenAI:    {},
	} {
		t.Run(string(kind), func(t *testing.T) {
			fake, server := newFake(t, kind)
			fake.Refuse("e-2")
			d := dialects[kind]
			var events []string
			for _, id := range []string{"e-1", "e-2", "e-3"} {
				events = append(events, d.render(now, id))
			}
			send(t, fake, server.URL, d.url, d.header, d.value, fmt.Sprintf(d.body, strings.Join(events, ",")), d.further)
			if diff := cmp.Diff(want, fake.Taken()); diff != "" {
				t.Errorf("taken (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFakesLetNobodyInWithAnotherCredential(t *testing.T) {
	for kind, want := range map[platforms.Type]exchanged{
		platforms.TypeMeta:      {Status: 400, Body: `"code":190`, Complaint: "the token is refused"},
		platforms.TypeGA4:       {Status: 204, Complaint: "another api_secret; Google Analytics does not say so"},
		platforms.TypeTikTok:    {Status: 200, Body: `"code":40105`, Complaint: "the token is refused"},
		platforms.TypePinterest: {Status: 401, Body: `"code":2`, Complaint: "the token is refused"},
		platforms.TypeMixpanel:  {Status: 401, Body: `"status":"Unauthorized"`, Complaint: "the service account is refused"},
		platforms.TypeSnapchat:  {Status: 401, Body: `"status":"INVALID"`, Complaint: "the token is refused"},
		platforms.TypeReddit:    {Status: 401, Body: `UNAUTHORIZED`, Complaint: "the token is refused"},
		platforms.TypeMicrosoft: {Status: 401, Body: `"code":"Unauthorized"`, Complaint: "the token is refused"},
		platforms.TypeLinkedIn:  {Status: 401, Body: `"code":"INVALID_ACCESS_TOKEN"`, Complaint: "the token is refused"},
		platforms.TypeKlaviyo:   {Status: 401, Body: `"code":"not_authenticated"`, Complaint: "the key is refused"},
		platforms.TypeAmplitude: {Status: 400, Body: `"error":"Invalid API key"`, Complaint: "the key is refused"},
		platforms.TypePostHog:   {Status: 401, Body: "API key is not valid", Complaint: "the token is refused"},
		platforms.TypeSegment:   {Status: 200, Body: `"success":true`, Complaint: "another write key; Segment does not say so"},
		platforms.TypeOpenAI:    {Status: 401, Body: "Incorrect API key", Complaint: "the key is refused"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			fake, server := newFake(t, kind)
			d := dialects[kind]
			got := send(t, fake, server.URL, strings.ReplaceAll(d.url, "=token", "=other"), d.header, d.value+"x",
				strings.NewReplacer(`"token"`, `"other"`, `"api_key":"project"`, `"api_key":"other"`).Replace(fmt.Sprintf(d.body, d.render(now, "e-1"))), d.further)
			if !strings.Contains(got.Body, want.Body) {
				t.Errorf("got %s, want it with %s", got.Body, want.Body)
			}
			got.Body = want.Body
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if taken := fake.Taken(); len(taken) > 0 {
				t.Errorf("it took %v", taken)
			}
		})
	}
}

func TestFakeMetaRefusesATokenInTheAddressAndAVersionThatHasEnded(t *testing.T) {
	for name, test := range map[string]struct {
		url, value string
		at         time.Time
		code, want string
	}{
		"the token in the header":               {"/v26.0/1/events", "Bearer token", now, `"events_received":1`, ""},
		"the token in the address":              {"/v26.0/1/events?access_token=token", "", now, `"code":190`, "the token belongs into the header Authorization, and nothing into the query"},
		"the token in both":                     {"/v26.0/1/events?access_token=token", "Bearer token", now, `"code":190`, "the token belongs into the header Authorization, and nothing into the query"},
		"the token without its word":            {"/v26.0/1/events", "token", now, `"code":190`, "the token is refused"},
		"an older version":                      {"/v21.0/1/events", "Bearer token", time.Date(2027, 1, 20, 23, 59, 59, 0, time.UTC), `"events_received":1`, ""},
		"an older version on the day it ends":   {"/v21.0/1/events", "Bearer token", time.Date(2027, 1, 21, 0, 0, 0, 0, time.UTC), `"code":2635`, "Meta takes v21.0 no longer"},
		"a version of which no end is known":    {"/v27.1/1/events", "Bearer token", time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC), `"events_received":1`, ""},
		"what is no version, and so no address": {"/latest/1/events", "Bearer token", now, `"error_subcode":33`, "no such address"},
	} {
		t.Run(name, func(t *testing.T) {
			fake, err := New(platforms.TypeMeta, []Account{account}, nil, func() time.Time { return test.at })
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(fake)
			defer server.Close()
			defer fake.Close()
			d := dialects[platforms.TypeMeta]
			got := send(t, fake, server.URL, test.url, "Authorization", test.value, fmt.Sprintf(d.body, fmt.Sprintf(d.event, d.seconds(test.at), "e-1")))
			if !strings.Contains(got.Body, test.code) || got.Complaint != test.want {
				t.Errorf("got %s and the complaint %q, want %s and %q", got.Body, got.Complaint, test.code, test.want)
			}
		})
	}
}

func TestFakesComplainOfRawPersonalData(t *testing.T) {
	for kind, d := range dialects {
		for _, raw := range []string{"ada@example.com", "https://shop.example/?mail=ada%40example.com", "+4915550100999"} {
			fake, server := newFake(t, kind)
			body := fmt.Sprintf(d.body, d.render(now, raw))
			got := send(t, fake, server.URL, d.url, d.header, d.value, body, d.further)
			if !strings.HasPrefix(got.Complaint, "raw personal data in ") || strings.Contains(got.Complaint, raw) {
				t.Errorf("%s: %s: got complaint %q", kind, raw, got.Complaint)
			}
		}
	}
}

func TestFakeWebhookVerifies(t *testing.T) {
	const body = `{"type":"lead","timestamp":"2026-11-20T12:00:00Z","data":{"event_id":"e-1","event":"lead","received_at":"2026-11-20T12:00:00Z",
		"value":1.5,"currency":"EUR","tax":null,"shipping":null,"discount":null,"order_id":null,"coupon":null,"client_id":"1.2","user_id":null,
		"session_id":null,"engagement_time_msec":1500,"content_id":null,"content_name":null,"search_term":null,"list_id":null,"list_name":null,
		"contents":[{"id":"a","quantity":1,"price":null,"name":null,"category":null,"brand":{"own":1}}],"properties":{"a":[1]},
		"context":{"page_url":null,"page_title":null,"referrer":null,"ip":"203.0.113.7","user_agent":null,"language":null,"action_source":null,
			"utm_source":null,"utm_medium":null,"utm_campaign":null,"utm_term":null,"utm_content":null,"click_ids":{"gclid":"G"}},
		"consent":{"ad_user_data":null,"ad_personalization":null,"ad_storage":null,"analytics_storage":null,"tcf":null,"gpp":null,"gpp_sid":[2],
			"us_privacy":null,"limited_data_use":false,"categories":{"a":true}},
		"user":{"email":"` + hash + `","emails":["` + hash + `"],"phone":null,"phones":null,"first_name":null,"last_name":null,"street":null,"city":null,
			"state":null,"zip":null,"country":"CH","date_of_birth":null,"gender":null}}}`
	with := func(old, instead string) string {
		if !strings.Contains(body, old) {
			t.Fatalf("%s is not in the body", old)
		}
		return strings.Replace(body, old, instead, 1)
	}
	for name, test := range map[string]struct {
		path, secret, body string
		age                time.Duration
		want               int
	}{
		"a good one":                     {"/hook", secret, body, 0, 204},
		"another path":                   {"/other", secret, body, 0, 404},
		"another secret":                 {"/hook", "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", body, 0, 401},
		"of ten minutes ago":             {"/hook", secret, body, 10 * time.Minute, 401},
		"an address in place of a hash":  {"/hook", secret, with(`"first_name":null`, `"first_name":"ada"`), 0, 400},
		"an address among hashes":        {"/hook", secret, with(`["`+hash+`"]`, `["`+hash+`","ada"]`), 0, 400},
		"hashes that are no list":        {"/hook", secret, with(`["`+hash+`"]`, `"`+hash+`"`), 0, 400},
		"a list in place of one hash":    {"/hook", secret, with(`"email":"`+hash+`"`, `"email":["`+hash+`"]`), 0, 400},
		"a country by its name":          {"/hook", secret, with(`"CH"`, `"Schweiz"`), 0, 400},
		"a member that nobody has":       {"/hook", secret, with(`"tax"`, `"colour":1,"tax"`), 0, 400},
		"somebody's member that none is": {"/hook", secret, with(`"phone":null`, `"age":null,"phone":null`), 0, 400},
		"a member that is missing":       {"/hook", secret, with(`"tax":null,`, ``), 0, 400},
		"consent that is missing":        {"/hook", secret, with(`"tcf":null,`, ``), 0, 400},
		"a value that is text":           {"/hook", secret, with(`1.5`, `"1.5"`), 0, 400},
		"an engagement of half a ms":     {"/hook", secret, with(`1500`, `0.5`), 0, 400},
		"an address that is none":        {"/hook", secret, with(`203.0.113.7`, `203.0.113`), 0, 400},
		"properties that are a list":     {"/hook", secret, with(`{"a":[1]}`, `[1]`), 0, 400},
		"a click id that is a number":    {"/hook", secret, with(`"G"`, `1`), 0, 400},
		"no event_id":                    {"/hook", secret, with(`"e-1"`, `""`), 0, 400},
		"no JSON":                        {"/hook", secret, "<html>", 0, 400},
	} {
		t.Run(name, func(t *testing.T) {
			_, server := newFake(t, platforms.TypeWebhook)
			signer, err := standardwebhooks.NewWebhook(test.secret)
			if err != nil {
				t.Fatal(err)
			}
			at := now.Add(-test.age)
			signature, err := signer.Sign("msg-1", at, []byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+test.path, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			request.Header = http.Header{
				"Content-Type": {"application/json"}, "Webhook-Id": {"msg-1"},
				"Webhook-Timestamp": {strconv.FormatInt(at.Unix(), 10)}, "Webhook-Signature": {signature},
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != test.want {
				t.Errorf("got %d, want %d", response.StatusCode, test.want)
			}
		})
	}
}

func TestFakeGA4HasAValidationServer(t *testing.T) {
	fake, server := newFake(t, platforms.TypeGA4)
	got := send(t, fake, server.URL, "/debug/mp/collect", "", "", `{"client_id":"","timestamp_micros":`+strconv.FormatInt(now.UnixMicro(), 10)+
		`,"events":[{"name":"ga_x","params":{}}]}`, nil)
	for _, part := range []string{`"fieldPath":"client_id"`, `"validationCode":"VALUE_REQUIRED"`, `"validationCode":"NAME_RESERVED"`} {
		if !strings.Contains(got.Body, part) {
			t.Errorf("got %s, want it with %s", got.Body, part)
		}
	}
}

func TestThereIsNoFakeOfWhatIsNoServer(t *testing.T) {
	if _, err := New(platforms.TypeLog, nil, nil, time.Now); err == nil || Has(platforms.TypeLog) {
		t.Errorf("got error %v", err)
	}
	for _, kind := range platforms.Types() {
		if Has(kind) == (kind == platforms.TypeLog) {
			t.Errorf("%s: has a fake: %t", kind, Has(kind))
		}
	}
}
