package query

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// apiPrefix is the description's server.
const apiPrefix = "/api/v1"

// description is openapi.json as the tests read it.
type description struct {
	t        *testing.T
	document any
	schemas  *jsonschema.Compiler
	// produced are the answers that were seen: method, call, status and content type.
	produced map[string]bool
	// bodies are what was seen in them, and the examples, by the schema that they follow.
	bodies map[string]*schemaGroup
}

func describedAPI(t *testing.T) *description {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(openAPI))
	if err != nil {
		t.Fatal(err)
	}
	d := &description{t: t, document: document, schemas: jsonschema.NewCompiler(), produced: map[string]bool{}, bodies: map[string]*schemaGroup{}}
	d.schemas.DefaultDraft(jsonschema.Draft2020)
	d.schemas.AssertFormat()
	if err := d.schemas.AddResource("openapi.json", document); err != nil {
		t.Fatal(err)
	}
	return d
}

// at follows a path of members, and references on the way. It returns nil where there is nothing.
func (d *description) at(path ...string) any {
	value := d.document
	for _, name := range path {
		value = d.resolve(member(value, name))
	}
	return value
}

// member returns a member of an object, or nil.
func member(value any, name string) any {
	object, _ := value.(map[string]any)
	return object[name]
}

// resolve follows a reference.
func (d *description) resolve(value any) any {
	if reference, ok := member(value, "$ref").(string); ok {
		return d.at(strings.Split(strings.TrimPrefix(reference, "#/"), "/")...)
	}
	return value
}

// object is at for what must be an object.
func (d *description) object(path ...string) map[string]any {
	object, _ := d.at(path...).(map[string]any)
	return object
}

// validate says what is wrong with a JSON value by the schema at a path, which may be a reference itself.
func (d *description) validate(value any, path ...string) error {
	pointer := ""
	for _, name := range path {
		pointer += "/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	schema, err := d.schemas.Compile("openapi.json#" + pointer)
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// check holds an answer against what the description says of the call.
func (d *description) check(method, call string, answer *httptest.ResponseRecorder) {
	d.t.Helper()
	contentType, _, _ := strings.Cut(answer.Header().Get("Content-Type"), ";")
	seen := fmt.Sprintf("%s %s %d %s", method, call, answer.Code, contentType)
	d.produced[seen] = true
	status := fmt.Sprint(answer.Code)
	response := []string{"paths", call, strings.ToLower(method), "responses", status}
	if d.object(append(response, "content", contentType)...) == nil {
		d.t.Errorf("%s is not described", seen)
		return
	}
	described := d.object(append(response, "headers")...)
	for _, name := range []string{"Weir-As-Of", "Weir-Complete-From", "Link", "Retry-After", "WWW-Authenticate"} {
		value := answer.Header().Get(name)
		header := d.resolve(described[name])
		switch {
		case value != "" && header == nil:
			d.t.Errorf("%s: the header %s is not described", seen, name)
		case value == "" && member(header, "required") == true:
			d.t.Errorf("%s lacks the header %s", seen, name)
		}
	}
	switch contentType {
	case typeCSV:
		d.checkCSV(seen, answer, d.at(append(response, "content", typeCSV, "example")...))
	case typeNDJSON:
		for line := range strings.Lines(answer.Body.String()) {
			d.checkBody(seen, []byte(line), append(d.where(response), "content", contentType, "schema"))
		}
	default:
		d.checkBody(seen, answer.Body.Bytes(), append(d.where(response), "content", contentType, "schema"))
		d.checkMessage(seen, answer, d.at(append(response, "content", contentType, "example", "message")...))
	}
}

// checkMessage compares an error's message with the example. What a call answers in differs from call to call.
func (d *description) checkMessage(seen string, answer *httptest.ResponseRecorder, example any) {
	d.t.Helper()
	var body struct{ Message string }
	if err := json.Unmarshal(answer.Body.Bytes(), &body); err != nil {
		d.t.Errorf("%s: %v", seen, err)
	}
	if example != nil && example != body.Message && answer.Code != http.StatusNotAcceptable {
		d.t.Errorf("%s: the message is %q, the example %q", seen, body.Message, example)
	}
}

// where returns the path of what a response refers to, since a schema's path cannot lead through a reference.
func (d *description) where(response []string) []string {
	parent := d.object(response[:len(response)-1]...)
	if reference, ok := member(parent[response[len(response)-1]], "$ref").(string); ok {
		return strings.Split(strings.TrimPrefix(reference, "#/"), "/")
	}
	return response
}

func (d *description) checkBody(seen string, body []byte, schema []string) {
	d.t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err == nil {
		err = d.validate(value, schema...)
	}
	if err != nil {
		d.t.Errorf("%s: %v\nin %s", seen, err, body)
	}
	d.keep(seen, body, schema)
}

// keep puts a body to those that other validators are asked about.
func (d *description) keep(seen string, body []byte, schema []string) {
	group := d.bodies[strings.Join(schema, " ")]
	if group == nil {
		group = &schemaGroup{Schema: d.at(schema...)}
		d.bodies[strings.Join(schema, " ")] = group
	}
	group.Values = append(group.Values, seenValue{seen, body})
}

func (d *description) checkCSV(seen string, answer *httptest.ResponseRecorder, example any) {
	d.t.Helper()
	text, _ := example.(string)
	want, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(want) == 0 {
		d.t.Fatalf("%s: the example is no CSV: %v", seen, err)
	}
	got, err := csv.NewReader(bytes.NewReader(answer.Body.Bytes())).ReadAll()
	if err != nil {
		d.t.Errorf("%s: %v", seen, err)
	} else if diff := cmp.Diff(want[0], got[0]); diff != "" {
		d.t.Errorf("%s: columns (-described +answered):\n%s", seen, diff)
	}
}

// propertyCalls are the described calls about a property that may be made with the scope read, with a query that they can be
// asked with.
func (d *description) propertyCalls() map[string]string {
	all := map[string]string{}
	for path := range d.object("paths") {
		inner, isOne := strings.CutPrefix(path, "/properties/{property}/")
		if isOne && d.at("paths", path, "get") != nil && !strings.Contains(inner, "{") {
			all[path] = ""
		}
	}
	all["/properties/{property}/analytics/funnel"] = "steps[]=pageview&steps[]=purchase"
	all["/properties/{property}/analytics/breakdown"] = "by=page"
	return all
}

// target returns the request target of a call.
func target(call, property, query string) string {
	return apiPrefix + strings.Replace(call, "{property}", property, 1) + "?" + query
}

func TestTheDescriptionIsTrue(t *testing.T) {
	handler, api := serve(t)
	d := describedAPI(t)
	ask := func(call, token, accept, target string) {
		t.Helper()
		request := httptest.NewRequest(http.MethodGet, target, nil)
		request.Header.Set("Accept", accept)
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, request)
		d.check(http.MethodGet, call, answer)
	}

	// Each call in each way that is described for all of them.
	for call, query := range d.propertyCalls() {
		for _, accept := range slices.Sorted(maps.Keys(d.object("paths", call, "get", "responses", "200", "content"))) {
			for _, property := range []string{"berlin", "trimmed", "empty"} {
				ask(call, tokens[property], accept, target(call, property, query))
			}
		}
		berlin := target(call, "berlin", query)
		ask(call, "", typeJSON, berlin)
		ask(call, tokens["no scope"], typeJSON, berlin)
		ask(call, tokens["berlin"], typeJSON, target(call, "nowhere", query))
		ask(call, tokens["berlin"], "image/png", berlin)
		ask(call, tokens["berlin"], typeJSON, berlin+"&period=1y")
		ask(call, tokens["berlin"], typeJSON, berlin+"&unknown=1")
		ask(call, tokens["berlin"], typeJSON, berlin+"&event="+strings.Repeat("a", MaxQueryBytes))
		ask(call, tokens["replaying"], typeJSON, target(call, "replaying", query))
		for range failureBurst {
			ask(call, "wt_guess", typeJSON, berlin)
		}
		handler.failures = newFailures()
	}
	ask("/openapi.json", "", typeJSON, apiPrefix+"/openapi.json")
	// And all that the golden answers are about.
	requests, err := filepath.Glob("testdata/answers/*.request")
	if err != nil || len(requests) == 0 {
		t.Fatalf("no requests: %v", err)
	}
	for _, path := range requests {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		method, where, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
		property, rest, _ := strings.Cut(strings.TrimPrefix(where, apiPrefix+"/properties/"), "/")
		call, _, _ := strings.Cut(rest, "?")
		if strings.HasPrefix(call, "events/") && call != "events/stats" {
			call = "events/{event_id}"
		}
		if method == http.MethodGet {
			ask("/properties/{property}/"+call, tokens[property], "*/*", where)
		}
	}

	d.checkProperties(handler, api)
	d.checkEvents(handler, api)
	d.checkReplays(handler, api)
	d.checkErasures(handler, api)
	d.checkShadow(handler, api)
	d.checkPlatforms(handler, api)

	for _, refusal := range askAjv(t, openAjv(t), slices.Collect(maps.Values(d.bodies)), d.object("components", "schemas")) {
		t.Errorf("Ajv: %s", refusal)
	}

	// Every described answer was produced.
	for call := range d.object("paths") {
		for method := range d.object("paths", call) {
			for status := range d.object("paths", call, method, "responses") {
				for contentType := range d.object("paths", call, method, "responses", status, "content") {
					if seen := fmt.Sprintf("%s %s %s %s", strings.ToUpper(method), call, status, contentType); !d.produced[seen] {
						t.Errorf("%s is described, but was not answered", seen)
					}
				}
			}
		}
	}
}

// replayerFunc stands for a property's stream.
type replayerFunc func(stream.ReplayRequest) (int, error)

func (f replayerFunc) Replay(_ context.Context, request stream.ReplayRequest) (int, error) {
	return f(request)
}

// checkReplays asks for replays in each way that is described.
func (d *description) checkReplays(handler *Handler, api http.Handler) {
	handler.failures = newFailures()
	const call = "/properties/{property}/deliveries/replay"
	fails := errors.New("connection lost")
	i := indexOf(d.t, handler, "berlin")
	served := slices.Clone(*handler.tenants.Load())
	served[i].Property.Platforms = []platforms.Platform{{Name: "crm", Type: platforms.TypeWebhook}, {Name: "lost", Type: platforms.TypeWebhook}}
	served[i].Replayer = replayerFunc(func(request stream.ReplayRequest) (int, error) {
		if request.Platform == "lost" {
			return 1, fails
		}
		return 42, nil
	})
	handler.Serve(served)
	ask := func(token, property, contentType, body string) {
		d.t.Helper()
		request := httptest.NewRequest(http.MethodPost, apiPrefix+strings.Replace(call, "{property}", property, 1), strings.NewReader(body))
		request.Header.Set("Content-Type", contentType)
		request.Header.Set("Authorization", "Bearer "+token)
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, request)
		d.check(http.MethodPost, call, answer)
	}
	examples, _ := d.at("components", "schemas", "Replay", "examples").([]any)
	for _, example := range examples {
		body, err := json.Marshal(example)
		if err != nil {
			d.t.Fatal(err)
		}
		ask(tokens["write"], "berlin", typeJSON, string(body))
	}
	ask(tokens["write"], "berlin", typeJSON, `{"platform": "crm", "from": "2026-10-01"}`)
	ask(tokens["write"], "berlin", typeJSON, `{"platform": "lost", "from": "2026-10-01"}`)
	ask(tokens["write"], "berlin", typeJSON, `{"status": ["delivered"]}`)
	ask(tokens["write"], "berlin", typeJSON, `[]`)
	ask(tokens["write"], "berlin", typeJSON, strings.Repeat(" ", maxReplayBody+1))
	ask(tokens["write"], "berlin", "text/plain", `{}`)
	ask(tokens["write"], "nowhere", typeJSON, `{}`)
	ask(tokens["berlin"], "berlin", typeJSON, `{}`)
	for range failureBurst + 1 {
		ask("wt_guess", "berlin", typeJSON, `{}`)
	}
}

// checkProperties asks for a token's properties in each way that is described.
func (d *description) checkProperties(handler *Handler, api http.Handler) {
	const call = "/properties"
	handler.failures = newFailures()
	for _, row := range []struct{ token, accept, query string }{
		{tokens["berlin"], typeJSON, ""}, {tokens["no scope"], typeJSON, ""}, {tokens["berlin"], "image/png", ""}, {tokens["berlin"], typeJSON, "?limit=1"},
		{tokens["berlin"], typeJSON, "?" + strings.Repeat("a", MaxQueryBytes+1)},
	} {
		d.check("GET", call, askWith(api, "GET", apiPrefix+call+row.query, map[string]string{"Authorization": "Bearer " + row.token, "Accept": row.accept}))
	}
	for range failureBurst + 1 {
		d.check("GET", call, ask(api, "GET", "Bearer wt_guess", apiPrefix+call))
	}
}

// checkEvents asks for single events in each way that is described.
func (d *description) checkEvents(handler *Handler, api http.Handler) {
	const call = "/properties/{property}/events/{event_id}"
	handler.failures = newFailures()
	at := func(token, accept, property, event string) {
		d.t.Helper()
		target := apiPrefix + "/properties/" + property + "/events/" + event
		d.check("GET", call, askWith(api, "GET", target, map[string]string{"Authorization": "Bearer " + token, "Accept": accept}))
	}
	for event := range 16 {
		at(tokens["berlin"], typeJSON, "berlin", fmt.Sprintf("e%02d", event+1))
	}
	at(tokens["berlin"], typeJSON, "berlin", "none")
	at(tokens["berlin"], typeJSON, "nowhere", "e01")
	at(tokens["berlin"], typeCSV, "berlin", "e01")
	at(tokens["berlin"], typeJSON, "berlin", "e01?period=24h")
	at(tokens["berlin"], typeJSON, "berlin", "e01?"+strings.Repeat("a", MaxQueryBytes+1))
	at(tokens["no scope"], typeJSON, "berlin", "e01")
	at(tokens["replaying"], typeJSON, "replaying", "e01")
	events, _ := (*handler.tenants.Load())[indexOf(d.t, handler, "berlin")].Events.(StreamEvents)
	source, _ := events.Stream.(*memory)
	source.away = true
	at(tokens["berlin"], typeJSON, "berlin", "e01")
	source.away = false
	for range failureBurst + 1 {
		at("wt_guess", typeJSON, "berlin", "e01")
	}
}

// checkShadow asks for what a platform would be sent in each way that is described.
func (d *description) checkShadow(handler *Handler, api http.Handler) {
	handler.failures = newFailures()
	served := slices.Clone(*handler.tenants.Load())
	served[indexOf(d.t, handler, "berlin")].Property.Platforms = []platforms.Platform{{Name: "crm"}, {Name: "broken"}}
	handler.Serve(served)
	const call = "/properties/{property}/platforms/{platform}/shadow"
	at := func(property, platform string) string {
		return apiPrefix + "/properties/" + property + "/platforms/" + platform + "/shadow"
	}
	type row struct{ token, accept, path string }
	rows := []row{
		{tokens["admin"], typeJSON, at("berlin", "crm")}, {tokens["admin"], typeJSON, at("berlin", "crm") + "?limit=2"}, {tokens["admin"], typeJSON, at("berlin", "broken")},
		{tokens["admin"], typeJSON, at("berlin", "other")}, {tokens["admin"], typeJSON, at("nowhere", "crm")}, {"", typeJSON, at("berlin", "crm")},
		{tokens["write"], typeJSON, at("berlin", "crm")}, {tokens["admin"], "image/png", at("berlin", "crm")}, {tokens["admin"], typeJSON, at("berlin", "crm") + "?limit=1001"},
		{tokens["admin"], typeJSON, at("berlin", "crm") + "?limit=1&x=" + strings.Repeat("a", MaxQueryBytes)},
	}
	for range failureBurst + 1 {
		rows = append(rows, row{"wt_guess", typeJSON, at("berlin", "crm")})
	}
	for _, row := range rows {
		request := httptest.NewRequestWithContext(d.t.Context(), http.MethodGet, row.path, http.NoBody)
		if row.token != "" {
			request.Header.Set("Authorization", "Bearer "+row.token)
		}
		request.Header.Set("Accept", row.accept)
		response := httptest.NewRecorder()
		api.ServeHTTP(response, request)
		d.check("GET", call, response)
	}
}

// checkErasures asks for erasures, and for their states, in each way that is described.
func (d *description) checkErasures(handler *Handler, api http.Handler) {
	const call = "/properties/{property}/erasures"
	handler.failures = newFailures()
	i := indexOf(d.t, handler, "berlin")
	erasing := &eraser{states: map[string]stream.ErasureState{anErasure: {
		ID: anErasure, Requested: fixtureNow, Ledgered: fixtureNow, Hidden: fixtureNow, Purged: fixtureNow, Events: 1, Records: 2, Identifiers: 3, Linked: 4,
		Platforms: []string{"crm", "gone"},
	}}}
	served := slices.Clone(*handler.tenants.Load())
	served[i].Eraser = erasing
	for _, platform := range platforms.Types() {
		served[i].Property.Platforms = append(served[i].Property.Platforms, platforms.Platform{Name: strings.ToLower(string(platform)), Type: platform})
	}
	handler.Serve(served)
	ask := func(method, token, property, contentType, path, body string) {
		d.t.Helper()
		request := httptest.NewRequest(method, apiPrefix+strings.Replace(call, "{property}", property, 1)+path, strings.NewReader(body))
		request.Header.Set("Content-Type", contentType)
		request.Header.Set("Authorization", "Bearer "+token)
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, request)
		described := call
		if path != "" {
			described += "/{erasure}"
		}
		d.check(method, described, answer)
	}
	examples, _ := d.at("components", "schemas", "Subject", "examples").([]any)
	for _, example := range examples {
		body, err := json.Marshal(example)
		if err != nil {
			d.t.Fatal(err)
		}
		ask(http.MethodPost, tokens["admin"], "berlin", typeJSON, "", string(body))
	}
	erasing.err = stream.ErrNotLedgered
	ask(http.MethodPost, tokens["admin"], "berlin", typeJSON, "", `{"client_id": 4711}`)
	ask(http.MethodPost, tokens["admin"], "berlin", typeJSON, "", `{"name": "jane"}`)
	ask(http.MethodPost, tokens["admin"], "berlin", typeJSON, "", `[]`)
	ask(http.MethodPost, tokens["admin"], "berlin", typeJSON, "", strings.Repeat(" ", maxErasureBody+1))
	ask(http.MethodPost, tokens["admin"], "berlin", "text/plain", "", `{}`)
	ask(http.MethodPost, tokens["admin"], "nowhere", typeJSON, "", `{}`)
	ask(http.MethodPost, tokens["write"], "berlin", typeJSON, "", `{}`)
	erasing.err = nil
	for _, path := range []string{"/" + anErasure, "/" + strings.ToUpper(anErasure), "/no-uuid", "/3e1f8e44-5a5c-4c0e-9d0b-000000000000", "/x?" + strings.Repeat("a", MaxQueryBytes+1)} {
		ask(http.MethodGet, tokens["admin"], "berlin", typeJSON, path, "")
	}
	ask(http.MethodGet, tokens["write"], "berlin", typeJSON, "/"+anErasure, "")
	erasing.err = errors.New("connection lost")
	ask(http.MethodGet, tokens["admin"], "berlin", typeJSON, "/"+anErasure, "")
	for range failureBurst + 1 {
		ask(http.MethodPost, "wt_guess", "berlin", typeJSON, "", `{}`)
	}
	ask(http.MethodGet, "wt_guess", "berlin", typeJSON, "/"+anErasure, "")
	handler.failures = newFailures()
	ask(http.MethodGet, "wt_guess", "berlin", typeJSON, "/"+anErasure, "")
}

func TestEveryRouteIsDescribed(t *testing.T) {
	d := describedAPI(t)
	var got []string
	err := chi.Walk(routes(New(Options{})).(chi.Routes), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if path, found := strings.CutPrefix(route, apiPrefix); found && method != http.MethodHead && method != http.MethodOptions {
			got = append(got, method+" "+path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for path := range d.object("paths") {
		for method := range d.object("paths", path) {
			want = append(want, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-described +routes):\n%s", diff)
	}
}

func TestDescribedParametersAreUnderstood(t *testing.T) {
	_, api := serve(t)
	d := describedAPI(t)
	status := func(target string) int {
		return get(api, tokens["berlin"], strings.TrimPrefix(target, apiPrefix+"/properties/")).Code
	}
	body := func(target string) string {
		return get(api, tokens["berlin"], strings.TrimPrefix(target, apiPrefix+"/properties/")).Body.String()
	}
	for call, base := range d.propertyCalls() {
		parameters, _ := d.at("paths", call, "get", "parameters").([]any)
		for _, raw := range parameters {
			parameter := d.resolve(raw)
			name, _ := member(parameter, "name").(string)
			schema := member(parameter, "schema")
			if member(parameter, "in") != "query" {
				continue
			}
			with := func(values ...any) string {
				query := base
				if strings.HasPrefix(base, name) { // the parameter is required, so base has it
					query = ""
				}
				for _, value := range values {
					query += "&" + url.QueryEscape(name) + "=" + url.QueryEscape(fmt.Sprint(value))
				}
				return target(call, "berlin", query)
			}
			accepted, _ := member(schema, "enum").([]any)
			for _, value := range accepted {
				if got := status(with(value)); got != 200 {
					t.Errorf("%s: %s=%v: got %d", call, name, value, got)
				}
			}
			if len(accepted) > 0 && status(with("another")) != 422 {
				t.Errorf("%s: %s takes a value that is not described", call, name)
			}
			if example := member(parameter, "example"); example != nil {
				values, isList := example.([]any)
				if !isList {
					values = []any{example}
				}
				if got := status(with(values...)); got != 200 {
					t.Errorf("%s: the example of %s: got %d", call, name, got)
				}
			}
			if usual := member(schema, "default"); usual != nil && body(with(usual)) != body(target(call, "berlin", base)) {
				t.Errorf("%s: %s is not %v by default", call, name, usual)
			}
			if member(parameter, "required") == true && status(target(call, "berlin", "")) != 422 {
				t.Errorf("%s: %s is not required", call, name)
			}
		}
	}
}

func TestExamplesFollowTheirSchemas(t *testing.T) {
	d := describedAPI(t)
	check := func(example any, schema ...string) {
		t.Helper()
		body, err := json.Marshal(example)
		if err != nil {
			t.Fatal(err)
		}
		d.checkBody("the example of "+strings.Join(schema, " "), body, schema)
	}
	for name := range d.object("components", "schemas") {
		examples, _ := d.at("components", "schemas", name, "examples").([]any)
		for _, example := range examples {
			check(example, "components", "schemas", name)
		}
	}
	for call := range d.object("paths") {
		for method := range d.object("paths", call) {
			for status := range d.object("paths", call, method, "responses") {
				response := d.where([]string{"paths", call, method, "responses", status})
				for contentType := range d.object(append(response, "content")...) {
					example := d.at(append(response, "content", contentType, "example")...)
					if example != nil && contentType != typeCSV {
						check(example, append(response, "content", contentType, "schema")...)
					}
				}
			}
		}
	}
	for _, refusal := range askAjv(t, openAjv(t), slices.Collect(maps.Values(d.bodies)), d.object("components", "schemas")) {
		t.Errorf("Ajv: %s", refusal)
	}
}

func TestTheDocsNeedNothingFromElsewhere(t *testing.T) {
	_, api := serve(t)
	reference := regexp.MustCompile(`(?:href|src)="([^"]*)"|fetch\('([^']*)'|\burl\(([^)]*)\)|@import "([^"]*)"`)
	seen := map[string]bool{}
	for open := []string{"/docs"}; len(open) > 0; open = open[1:] {
		if seen[open[0]] {
			continue
		}
		seen[open[0]] = true
		answer := ask(api, http.MethodGet, "", open[0])
		if answer.Code != 200 {
			t.Errorf("%s: got %d", open[0], answer.Code)
		}
		policy := answer.Header().Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
			t.Errorf("%s: got the policy %q", open[0], policy)
		}
		head := ask(api, http.MethodHead, "", open[0])
		if head.Code != 200 || head.Header().Get("Content-Length") != fmt.Sprint(answer.Body.Len()) {
			t.Errorf("HEAD %s: got %d, %s", open[0], head.Code, head.Header().Get("Content-Length"))
		}
		if open[0] == apiPrefix+"/openapi.json" {
			continue // its examples name other hosts
		}
		for _, match := range reference.FindAllStringSubmatch(answer.Body.String(), -1) {
			to := strings.Join(match[1:], "")
			if !strings.HasPrefix(to, "/") {
				t.Errorf("%s refers to %q", open[0], to)
				continue
			}
			open = append(open, to)
		}
	}
	for _, want := range []string{"/docs", "/docs/docs.css", "/docs/docs.js", apiPrefix + "/openapi.json"} {
		if !seen[want] {
			t.Errorf("the page does not lead to %s", want)
		}
	}
}
