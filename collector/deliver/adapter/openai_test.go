package adapter_test

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/platforms"
)

// OpenAI's page of the Conversions API shows an event with the hashes of user@example.com and of customer_12345.
func TestOpenAIGetsTheHashesThatItsDocumentsShow(t *testing.T) {
	cfg := configured(platforms.TypeOpenAI)
	opened, err := adapter.Open(cfg, credentials, ruleOf(cfg))
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"event": "lead", "user_id": " customer_12345 ", "user": {"email": " User@Example.com "}}`)
	payload, verdict := opened.Map(accept(t, requestCase{Config: cfg}, body, 0))
	if verdict.Class != adapter.Undecided {
		t.Fatalf("got verdict %+v", verdict)
	}
	var sent struct {
		User map[string][]string `json:"user"`
	}
	if err := json.Unmarshal(payload.Body, &sent); err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		"emails_sha256":       {"b4c9a289323b21a01c3e940f150eb9b8c542587f1abfd8f0e1cc1ffc5e475514"},
		"external_ids_sha256": {"73d83a078369bb4f0971b317aa7797a91cf5c0df1b62161c2e47d75c33ab5b6e"},
	}
	if diff := cmp.Diff(want, sent.User); diff != "" {
		t.Error(diff)
	}
}
