package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// usesKubectl asks as people do who have kubectl and the plugin: through the API server, over a forwarded port, with a token that is made
// for the command and gone afterwards.
func usesKubectl(t *testing.T, s *suite) {
	shop := s.tenantOf(t, "shop")
	folder := t.TempDir()
	plugin := filepath.Join(folder, "kubectl-weir")
	must(t, "go", "build", "-C", "../..", "-o", plugin, "./cli/weir")
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	weir := func(args ...string) (string, error) {
		return command(t.Context(), "kubectl", append([]string{"weir"}, append(args, "-n", shop.namespace)...)...)
	}
	asked := func(args ...string) string {
		t.Helper()
		begin := time.Now()
		out, err := weir(args...)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		s.figure(t, "kubectl weir "+args[0], "%.1f s", time.Since(begin).Seconds())
		return out
	}
	for sentence, c := range map[string]struct {
		args []string
		want []string
	}{
		"the list has the Property":                  {[]string{"status"}, []string{shop.name, "True"}},
		"status says that it is ready, with numbers": {[]string{"status", shop.name}, []string{"is ready", "Last 30 minutes", "Platforms, and deliveries"}},
		"events are listed":                          {[]string{"events", shop.name, "--event", "purchase"}, []string{"j3", "j7"}},
		"what was refused is listed":                 {[]string{"rejections", shop.name}, []string{"The data.value field is required."}},
		"CSV is exported":                            {[]string{"export", shop.name, "--format", "csv"}, []string{"event_id,", "j1"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			out := asked(c.args...)
			for _, text := range c.want {
				if !contains(out, text) {
					t.Errorf("there is no %q in\n%s", text, out)
				}
			}
		})
	}
	t.Run("the doctor sees Redis from the pods, and nothing that has failed", func(t *testing.T) {
		var answer struct {
			Data []struct{ Check, Verdict, Seen, Advice string }
		}
		within(t, time.Minute, "no check has failed", func() error {
			out, err := weir("doctor", shop.name, "-o", "json")
			if decoded := json.Unmarshal([]byte(out), &answer); decoded != nil {
				t.Fatalf("%v: %s", decoded, out)
			}
			if err == nil {
				return nil
			}
			var bad []string
			for _, check := range answer.Data {
				// The suite's hosts are in no DNS: the ingress is asked by its address.
				if check.Verdict == "failed" && !strings.HasPrefix(check.Check, "DNS of ") {
					bad = append(bad, check.Check+": "+check.Seen)
				}
			}
			if len(bad) > 0 {
				return errors.New(strings.Join(bad, "\n"))
			}
			return nil
		})
		seen := false
		for _, check := range answer.Data {
			seen = seen || strings.HasPrefix(check.Check, "redis from "+shop.name+"-collector-") && check.Verdict == "ok"
		}
		if !seen {
			t.Errorf("no collector was asked whether it reaches Redis: %+v", answer.Data)
		}
	})
	t.Run("a replay puts back what there is, which is nothing", func(t *testing.T) {
		out := asked("replay", shop.name, "--platform", shop.get(t).Spec.Platforms[0].Name, "--from", time.Now().UTC().Format(time.DateOnly), "--yes")
		if !contains(out, "0 deliveries") {
			t.Errorf("it says %s", out)
		}
	})
	if left := must(t, "kubectl", "-n", shop.namespace, "get", "accesstokens", "-o", "name"); contains(left, "weir-cli-") {
		t.Errorf("tokens are left behind: %s", left)
	}
}
