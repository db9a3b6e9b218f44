package query

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/stream"
)

// documentedReasons reads the reasons of docs/reference/delivery-states.md, by the status that they are reasons of; Pending
// stands for those for which a platform is paused.
func documentedReasons(t *testing.T) map[stream.Status][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/delivery-states.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Reasons\n")
	section, _, ended := strings.Cut(section, "\n## ")
	byEvent, byPlatform, divided := strings.Cut(section, "\n### ")
	if !found || !ended || !divided {
		t.Fatal("the page lacks the section Reasons, or what follows it")
	}
	code := regexp.MustCompile("`([^`]+)`")
	reasons, status := map[stream.Status][]string{}, stream.Pending
	for line := range strings.SplitSeq(byEvent, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		for _, choice := range statusChoices {
			if strings.TrimSpace(cells[1]) == "`"+choice.text+"`" {
				status = choice.value
			}
		}
		for _, reason := range code.FindAllStringSubmatch(cells[2], -1) {
			reasons[status] = append(reasons[status], reason[1])
		}
	}
	for line := range strings.SplitSeq(byPlatform, "\n") {
		if cells := strings.Split(line, "|"); len(cells) == 4 {
			for _, reason := range code.FindAllStringSubmatch(cells[1]+cells[2], -1) {
				reasons[stream.Pending] = append(reasons[stream.Pending], reason[1])
			}
		}
	}
	return reasons
}

// ofPlatforms are reasons that stand for any of a platform's own.
var ofPlatforms = regexp.MustCompile(`^(http_\d.*|code_N.*)$`)

func TestEachDocumentedReasonHasAdvice(t *testing.T) {
	for status, reasons := range documentedReasons(t) {
		for _, reason := range reasons {
			_, listed := advices[reason]
			if !listed && !ofPlatforms.MatchString(reason) {
				t.Errorf("%s, %s: nothing is said of it", status, reason)
			}
			if advice := adviceFor(status, reason); !strings.HasSuffix(advice, ".") || len(advice) > 260 {
				t.Errorf("%s, %s: %q is no advice of a sentence or two", status, reason, advice)
			}
		}
	}
}

func TestEachAdviceIsOnADocumentedReason(t *testing.T) {
	documented := documentedReasons(t)
	all := map[string]bool{}
	for status, reasons := range documented {
		of := map[string]bool{}
		for _, reason := range reasons {
			all[reason], of[reason] = true, true
		}
		for reason := range advicesOf[status] {
			// What the table has for each event is a reason of either status.
			if !of[reason] && reason != "batch_refused" {
				t.Errorf("%s is no reason of %s", reason, status)
			}
		}
	}
	for reason := range advices {
		if !all[reason] {
			t.Errorf("delivery-states.md does not know %s", reason)
		}
	}
}

func TestAdviceFollowsTheStatusOfAnAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		status stream.Status
		reason string
		want   string
	}{
		"a status without a reason needs none":                    {stream.Delivered, "", ""},
		"a server's error passes":                                 {stream.Retrying, "http_503", "Nothing to do"},
		"a timeout of the server's passes":                        {stream.Retrying, "http_408", "Nothing to do"},
		"a bad request is the event's":                            {stream.Failed, "http_400", "Look at the event"},
		"a refused permission is the settings'":                   {stream.Retrying, "http_403", "permission"},
		"a failed permission is mended before it is sent again":   {stream.Failed, "http_404", "send the failed deliveries again"},
		"a failed credential is mended before it is sent again":   {stream.Failed, "unauthorized", "send the failed deliveries again"},
		"an age that came with waiting is no sender's":            {stream.Expired, "too_old", "waited"},
		"an age that an event came with is its sender's":          {stream.Skipped, "too_old", "as they happen"},
		"a platform's own code is looked up there":                {stream.Failed, "code_100_33", "its documentation"},
		"a refused field is looked up":                            {stream.Failed, "currency_refused", "this field"},
		"an unknown reason that is tried again is left alone":     {stream.Retrying, "cosmic_rays", "Nothing to do"},
		"an unknown reason of a failure is looked up":             {stream.Failed, "invalid_cookie", "its documentation"},
		"a status that is no number is the platform's own reason": {stream.Failed, "http_teapot", "its documentation"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := adviceFor(test.status, test.reason); !strings.Contains(got, test.want) || (test.want == "") != (got == "") {
				t.Errorf("got %q, want it to say %q", got, test.want)
			}
		})
	}
}
