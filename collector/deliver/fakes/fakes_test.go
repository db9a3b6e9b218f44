package fakes

import (
	"encoding/base64"
	"fmt"
	"io"
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
	secret  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	hash    = "b5fc85e55755f9e0d030a10ab4429b6b2944855f9a0d60077fe832becbc41d72"
	ofEmpty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

var account = Account{
	Platform: platforms.Platform{
		Name: "p", Settings: platforms.Settings{
			Meta: &platforms.Meta{PixelID: "1"}, GA4: &platforms.GA4{MeasurementID: "G-1"}, TikTok: &platforms.TikTok{EventSourceID: "C1"},
			Pinterest: &platforms.Pinterest{AdAccountID: "1"}, Mixpanel: &platforms.Mixpanel{ProjectID: "1"},
			Webhook: &platforms.Webhook{URL: "http://127.0.0.1/hook"}, PostHog: &platforms.PostHog{}, Segment: &platforms.Segment{},
			OpenAI: &platforms.OpenAI{PixelID: "px-1"},
		},
	},
	Credentials: map[string]string{
		"accessToken": "token", "apiSecret": "token", "conversionToken": "token",
		"serviceAccountUsername": "weir", "serviceAccountSecret": "token", "projectToken": "project", "gdprToken": "gdpr", "signingSecret": secret,
		"writeKey": "token", "apiKey": "token",
	},
}

// dialects say how a request to each platform is made: with the right credential or another.
var dialects = map[platforms.Type]struct {
	url, header, value, wrong string
	// event is a good one, with %d for its time and %q for its id; body is what it is put into.
	event, body string
	seconds     func(time.Time) int64
}{
	platforms.TypeMeta: {
		url:   "/v25.0/1/events?access_token=token",
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

func send(t *testing.T, fake *Server, base, url, header, value, body string) exchanged {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if header != "" {
		request.Header.Set(header, value)
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
			"a revenue that is a text":     {`"at"`, `"revenue":"$1","at"`, 200, `"success":true`, "revenue must be a number"},
			"products that are no list":    {`"at"`, `"products":{},"at"`, 200, `"success":true`, "products must be a list"},
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
				body := fmt.Sprintf(d.body, fmt.Sprintf(d.event, d.seconds(at), "e-1"))
				if old != "" {
					if !strings.Contains(body, old) {
						t.Fatalf("%s is not in %s", old, body)
					}
					body = strings.Replace(body, old, row.new, 1)
				}
				got := send(t, fake, server.URL, d.url, d.header, d.value, body)
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
				events = append(events, fmt.Sprintf(d.event, d.seconds(now), id))
			}
			send(t, fake, server.URL, d.url, d.header, d.value, fmt.Sprintf(d.body, strings.Join(events, ",")))
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
		platforms.TypePostHog:   {Status: 401, Body: "API key is not valid", Complaint: "the token is refused"},
		platforms.TypeSegment:   {Status: 200, Body: `"success":true`, Complaint: "another write key; Segment does not say so"},
		platforms.TypeOpenAI:    {Status: 401, Body: "Incorrect API key", Complaint: "the key is refused"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			fake, server := newFake(t, kind)
			d := dialects[kind]
			got := send(t, fake, server.URL, strings.ReplaceAll(d.url, "=token", "=other"), d.header, d.value+"x",
				strings.Replace(fmt.Sprintf(d.body, fmt.Sprintf(d.event, d.seconds(now), "e-1")), `"api_key":"project"`, `"api_key":"other"`, 1))
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

func TestFakesComplainOfRawPersonalData(t *testing.T) {
	for kind, d := range dialects {
		for _, raw := range []string{"ada@example.com", "https://shop.example/?mail=ada%40example.com", "+4915550100999"} {
			fake, server := newFake(t, kind)
			body := fmt.Sprintf(d.body, fmt.Sprintf(d.event, d.seconds(now), raw))
			got := send(t, fake, server.URL, d.url, d.header, d.value, body)
			if !strings.HasPrefix(got.Complaint, "raw personal data in ") || strings.Contains(got.Complaint, "ada") {
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
		`,"events":[{"name":"ga_x","params":{}}]}`)
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
