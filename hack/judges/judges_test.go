// Package judges_test holds what Weir sends against what others' libraries make of the same event.
package judges_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/event/envelope"
	"github.com/weir-dev/weir/collector/platforms"
)

// judgesPage lists where others' libraries send something else, and who is right.
const judgesPage = "../../docs/reference/platforms/judges.md"

// judge runs a script of hack/judges with what others have made for Node, and returns what it answers.
func judge[T any](t *testing.T, script string, input []byte) T {
	t.Helper()
	return judgeIn[T](t, "hack/judges", "NODE_JUDGES", script, input)
}

// judgeIn is judge with the packages of a folder, of which the script is told by a variable.
func judgeIn[T any](t *testing.T, packages, variable, script string, input []byte) T {
	t.Helper()
	find := exec.CommandContext(t.Context(), "../npm.sh", packages)
	var words bytes.Buffer
	find.Stderr = &words
	folder, err := find.Output()
	if err != nil {
		t.Fatalf("hack/npm.sh %s: %v: %s", packages, err, words.String())
	}
	installed := strings.TrimSpace(string(folder))
	run := exec.CommandContext(t.Context(), filepath.Join(installed, "node"), script)
	run.Env = append(os.Environ(), variable+"="+installed)
	run.Stdin, run.Stderr = bytes.NewReader(input), &words
	text, err := run.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, words.String())
	}
	var answer T
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("%s answers %s: %v", script, text, err)
	}
	return answer
}

// listed are the rows of the page's table below a heading, each as its first cells.
func listed(t *testing.T, heading string, cells int) []string {
	t.Helper()
	page, err := os.ReadFile(judgesPage)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %s", judgesPage, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var rows []string
	for line := range strings.Lines(section) {
		row := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(row) != cells+1 || strings.Contains(row[0], "---") {
			continue
		}
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		if row[cells] == "" {
			t.Errorf("%v does not say who is right", row)
		}
		rows = append(rows, strings.Join(row[:cells], " | "))
	}
	rows = rows[1:] // the names of the columns
	slices.Sort(rows)
	return rows
}

// metaData are a person's data, by Meta's names for them.
var metaData = map[string]struct {
	// member is the envelope's.
	member string
	values []string
}{
	"em":          {"user.email", []string{" Ada@Example.com ", "John_Smith@gmail.com", "jane.doe+x@gmail.com", "jörg@example.com"}},
	"ph":          {"user.phone", []string{"+16505551212", "+442071838750", "+4915550100999"}},
	"fn":          {"user.first_name", []string{"Mary", " Augusta Ada ", "Anne-Marie", "ÉLODIE", "정", "Γιώργος", "ΓΙΩΡΓΟΣ", "İpek", "O’Neil"}},
	"ln":          {"user.last_name", []string{"O'Lovelace", "von der Leyen", "Smith Jr.", "Núñez"}},
	"ct":          {"user.city", []string{"London", "St. Gallen", "New York", "Zürich", "東京"}},
	"st":          {"user.state", []string{"CA", "ny", "California", "ZH", "Bayern"}},
	"zp":          {"user.zip", []string{"94025", "94025-1234", "CH-9000", "SW1A 1AA", "01067"}},
	"country":     {"user.country", []string{"US", "de", "CHE"}},
	"db":          {"user.date_of_birth", []string{"1997-02-16", "19970216"}},
	"ge":          {"user.gender", []string{"f", "Female", "male", "diverse"}},
	"external_id": {"client_id", []string{"12345", " A-4711 ", "Ab C", strings.Repeat("a3f1c0de", 8)}},
}

// What Meta gets of a person is what Meta's own libraries would send, but for what the page lists.
func TestMetaGetsTheHashesOfItsOwnLibraries(t *testing.T) {
	type datum struct {
		Field string `json:"field"`
		Value string `json:"value"`
	}
	var data []datum
	for _, field := range slices.Sorted(maps.Keys(metaData)) {
		for _, value := range metaData[field].values {
			data = append(data, datum{field, value})
		}
	}
	for _, vector := range publishedVectors(t) {
		if field := map[string]string{"EmailLower": "em", "PhoneDigits": "ph", "FirstNameMeta": "fn"}[vector.Variant]; field != "" {
			data = append(data, datum{field, vector.Input})
		}
	}
	input, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	judged := judge[[]struct {
		SDK     string `json:"sdk"`
		Builder string `json:"builder"`
	}](t, "normalise.mjs", input)
	if len(judged) != len(data) {
		t.Fatalf("%d of %d values are judged", len(judged), len(data))
	}
	var found []string
	agreed := 0
	for i, d := range data {
		ours := metaHash(t, d.Field, d.Value)
		for library, theirs := range map[string]string{"Business SDK": judged[i].SDK, "parameter builder": judged[i].Builder} {
			if ours == theirs {
				agreed++
				continue
			}
			found = append(found, fmt.Sprintf("%s | %#q | %#q", library, d.Field, d.Value))
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	if diff := cmp.Diff(listed(t, "Hashes: Meta's own libraries", 3), found); diff != "" {
		t.Errorf("where they differ (-page +found):\n%s", diff)
	}
	if agreed < len(data) {
		t.Errorf("they agree on %d hashes only", agreed)
	}
}

type vector struct {
	Variant string `json:"variant"`
	Input   string `json:"input"`
}

// publishedVectors are the texts of which platforms have published the hashes.
func publishedVectors(t *testing.T) []vector {
	t.Helper()
	text, err := os.ReadFile("../../collector/event/envelope/testdata/hash-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(text, &vectors); err != nil || len(vectors) == 0 {
		t.Fatalf("%d vectors: %v", len(vectors), err)
	}
	return vectors
}

// metaHash is what Meta gets of a value, "" for nothing.
func metaHash(t *testing.T, field, value string) string {
	t.Helper()
	members := map[string]any{"event": "lead", "client_id": "c.1"}
	if name, ofUser := strings.CutPrefix(metaData[field].member, "user."); ofUser {
		members["user"] = map[string]any{name: value}
	} else {
		members[metaData[field].member] = value
	}
	body, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	sent := bodySent(t, platforms.TypeMeta, body)
	var user struct {
		Data map[string]jsontext.Value `json:"user_data"`
	}
	if err := json.Unmarshal(sent, &user); err != nil {
		t.Fatal(err)
	}
	if user.Data[field] == nil {
		return ""
	}
	var hashes []string
	if err := json.Unmarshal(user.Data[field], &hashes); err != nil || len(hashes) != 1 {
		t.Fatalf("%s is %s: %v", field, user.Data[field], err)
	}
	return hashes[0]
}

// settings are any that the platforms take.
var settings = map[platforms.Type]platforms.Settings{
	platforms.TypeAmplitude: {Amplitude: &platforms.Amplitude{}},
	platforms.TypeGA4:       {GA4: &platforms.GA4{MeasurementID: "G-1"}},
	platforms.TypeKlaviyo:   {Klaviyo: &platforms.Klaviyo{}},
	platforms.TypeMeta:      {Meta: &platforms.Meta{PixelID: "1"}},
	platforms.TypeMixpanel:  {Mixpanel: &platforms.Mixpanel{ProjectID: "1"}},
	platforms.TypePinterest: {Pinterest: &platforms.Pinterest{AdAccountID: "1"}},
	platforms.TypeSnapchat:  {Snapchat: &platforms.Snapchat{PixelID: "1ec32188-754e-4be2-8e55-c949a984a39f"}},
	platforms.TypeTikTok:    {TikTok: &platforms.TikTok{EventSourceID: "C1"}},
	platforms.TypeMicrosoft: {Microsoft: &platforms.Microsoft{TagID: "1"}},
}

// bodySent is what of a request's body an event becomes.
func bodySent(t *testing.T, kind platforms.Type, body []byte) []byte {
	t.Helper()
	cfg := platforms.Platform{Name: "p", Type: kind, Settings: settings[kind]}
	if kind == platforms.TypeLinkedIn {
		cfg.EventNames = map[string]string{"purchase": "1"}
	}
	opened, err := adapter.OpenShadow(cfg, new(config.Consent).Rule(&cfg))
	if err != nil {
		t.Fatal(err)
	}
	received := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	decoded := new(envelope.Envelope)
	if err := decoded.Decode(body); err != nil {
		t.Fatal(err)
	}
	valid, errs := decoded.Validate(received, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	property := config.Property{Platforms: []platforms.Platform{cfg}}
	accepted := envelope.Pseudonymise(valid, envelope.Acceptance{
		DeliveryID: uuid.MustParse("019a9f3c-7a00-7000-8000-000000000001"), Variants: property.Variants(), AccountVariants: property.AccountVariants(),
	})
	payload, verdict := opened.Map(&adapter.Event{Event: accepted, ReceivedAt: received})
	if verdict.Class != adapter.Undecided {
		t.Fatalf("%s does not get %s: %s", kind, body, verdict.Reason)
	}
	return payload.Body
}

// Weir fills the fields that Segment's destinations fill, with the same values, but for what the page lists.
func TestPlatformsGetTheFieldsThatSegmentSends(t *testing.T) {
	event, err := os.ReadFile("../reference/every-member.json")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	agreed := 0
	for kind, body := range judge[map[platforms.Type]jsontext.Value](t, "segment.mjs", event) {
		asked := event
		switch kind { // which would get no hashes with it, or no event
		case platforms.TypeGA4, platforms.TypeMicrosoft, platforms.TypeLinkedIn:
			asked = bytes.Replace(event, []byte(`"limited_data_use": true`), []byte(`"limited_data_use": false`), 1)
		}
		theirs, ours := flat(t, body), flat(t, bodySent(t, kind, asked))
		all := maps.Clone(theirs)
		maps.Copy(all, ours)
		for path := range all {
			what := "another value"
			switch {
			case slices.Equal(ours[path], theirs[path]):
				agreed++
				continue
			case theirs[path] == nil:
				what = "Weir alone"
			case ours[path] == nil:
				what = "Segment alone"
			}
			found = append(found, fmt.Sprintf("%s | %#q | %s", kind, path, what))
		}
	}
	slices.Sort(found)
	if diff := cmp.Diff(listed(t, "Fields: Segment's destinations", 3), found); diff != "" {
		t.Errorf("where they differ (-page +found):\n%s", diff)
	}
	if agreed < 80 {
		t.Errorf("they agree on %d fields only", agreed)
	}
}

// flat are the values of a JSON text by their paths, without the places in lists. Empty lists and texts are none.
func flat(t *testing.T, text jsontext.Value) map[string][]string {
	t.Helper()
	var tree any
	if err := json.Unmarshal(text, &tree, json.WithUnmarshalers(json.UnmarshalFromFunc(func(decoder *jsontext.Decoder, value *any) error {
		if decoder.PeekKind() == '0' { // with its digits
			number, err := decoder.ReadValue()
			*value = number.Clone()
			return err
		}
		return errors.ErrUnsupported
	}))); err != nil {
		t.Fatal(err)
	}
	values := map[string][]string{}
	var walk func(path string, at any)
	walk = func(path string, at any) {
		switch at := at.(type) {
		case map[string]any:
			for name, value := range at {
				walk(strings.TrimPrefix(path+"."+name, "."), value)
			}
		case []any:
			for _, value := range at {
				walk(path, value)
			}
		case nil:
		default:
			if text, err := json.Marshal(at); err == nil && string(text) != `""` {
				values[path] = append(values[path], string(text))
			}
		}
	}
	walk("", tree)
	return values
}
