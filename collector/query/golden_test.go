package query

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the answers of testdata/answers anew")

// TestAnswers makes each request of testdata/answers/NAME.request with the token of its property and compares
// status, headers and body with NAME.answer.
func TestAnswers(t *testing.T) {
	onEachEngine(t, func(t *testing.T, engine engineMaker) {
		_, api := serveFrom(t, engine)
		requests, err := filepath.Glob("testdata/answers/*.request")
		if err != nil || len(requests) == 0 {
			t.Fatalf("no requests: %v", err)
		}
		for _, path := range requests {
			t.Run(strings.TrimSuffix(filepath.Base(path), ".request"), func(t *testing.T) {
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				method, target, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
				property, _, _ := strings.Cut(strings.TrimPrefix(target, "/api/v1/properties/"), "/")
				answer := ask(api, method, "Bearer "+tokens[property], target)

				var got strings.Builder
				fmt.Fprintf(&got, "%d\n", answer.Code)
				for _, name := range []string{"Weir-As-Of", "Link", "Retry-After"} {
					if value := answer.Header().Get(name); value != "" {
						fmt.Fprintf(&got, "%s: %s\n", name, value)
					}
				}
				body := jsontext.Value(answer.Body.Bytes())
				if err := body.Indent(jsontext.WithIndent("  ")); err != nil {
					t.Fatalf("%v in %s", err, answer.Body)
				}
				fmt.Fprintf(&got, "\n%s\n", body)

				golden := strings.TrimSuffix(path, ".request") + ".answer"
				if *update {
					if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
						t.Fatal(err)
					}
					return
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), got.String()); diff != "" {
					t.Errorf("%s (-want +got):\n%s", target, diff)
				}
			})
		}
	})
}
