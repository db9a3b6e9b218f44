package segment_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/event/segment"
)

// FuzzTranslate reads anything: what is translated is an outline of JSON, no event is from the future, and every error is of
// a path in the body.
func FuzzTranslate(f *testing.F) {
	for _, body := range []string{
		`{"batch":[{"type":"track","event":"Order Completed","messageId":"m","properties":{"total":"1","currency":"EUR","products":[{"product_id":1},2]}}],"sentAt":"2026-11-20T12:00:00Z"}`,
		`{"batch":[{"type":"page","name":"n","context":{"page":{"url":"u","search":"?s"},"traits":{"address":{"city":"c"}},"consent":{"categoryPreferences":{"a":true}}}}],"context":{"ip":"i"}}`,
		`{"batch":[{"type":"screen","properties":{"a":{"b":[1,{"c":2}],"":null}},"context":{"consentManagement":{"deniedConsentIds":["x"],"allowedConsentIds":[1]}}},null,{"type":"track","event":"Product Added","properties":{"sku":"s"}}]}`,
		`{"batch":[{"type":"track","event":"x","context":{"consent":{"tcf":"C","gpp_sid":[2],"categories":{"a":{"b":1}}}}}],"context":{"consent":{"categoryPreferences":{"a":false}},"consentManagement":{"deniedConsentIds":["a"]}}}`,
		`{"batch":[{"type":"track","event":"x","timestamp":"1969-12-31T23:59:59Z","properties":{"phone":"+","birthday":"T"},"integrations":{"a":{"fbp":"f"}}},{"type":"identify"}]}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		request, err := segment.Decode(body, segment.Batch)
		if err != nil {
			return
		}
		var translator segment.Translator
		for i := range request.Len() {
			translation, errs := translator.Translate(request, i, noon)
			for _, err := range translator.Told(errs) {
				if !strings.HasPrefix(err.Field, "batch[") && !strings.HasPrefix(err.Field, "context.consent") || !strings.Contains(err.Message, err.Field) {
					t.Errorf("the error %+v is of nothing in the body", err)
				}
			}
			if len(errs) > 0 || translation.Ignored {
				continue
			}
			if text := written(translation.Outline); !jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true)) {
				t.Errorf("%s became %s", body, text)
			}
			if translation.OccurredAt.After(noon) {
				t.Errorf("%s happened at %s", body, translation.OccurredAt)
			}
		}
	})
}
