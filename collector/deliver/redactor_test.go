package deliver

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/platforms"
)

// TestNoFormOfACredentialIsShown has answers repeat a credential in forms that are masked, or for which the answer is not shown.
func TestNoFormOfACredentialIsShown(t *testing.T) {
	const secret = `p4ss/W<rd"&+k%41ey`
	r := newRedactor(map[string]string{"accessToken": secret}, nil)
	each := func(form string) string {
		var b strings.Builder
		for _, c := range []byte(secret) {
			fmt.Fprintf(&b, form, c)
		}
		return b.String()
	}
	percent := each("%%%02x")
	// What stands with it in base64 may be left.
	masked := regexp.MustCompile(`^the token [[:alnum:]]{0,4}…[[:alnum:]=]{0,4} has expired$`)
	wide := strings.Join(strings.Split(secret, ""), "\x00")
	for sentence, written := range map[string]string{
		"as it is":                         secret,
		"in capitals":                      strings.ToUpper(secret),
		"in JSON":                          `p4ss/W<rd\"&+k%41ey`,
		"in JSON for pages":                `p4ss/W\u003crd\"\u0026+k%41ey`,
		"in JSON of PHP's":                 `p4ss\/W<rd\"&+k%41ey`,
		"in JSON of code points":           each(`\u%04X`),
		"in JSON within JSON":              `p4ss\\/W<rd\\\"&+k%41ey`,
		"in a language's escapes":          each(`\x%02x`),
		"in a query":                       url.QueryEscape(secret),
		"in a query, lower-case":           strings.ToLower(url.QueryEscape(secret)),
		"in a path":                        url.PathEscape(secret),
		"in percents throughout":           percent,
		"in percents twice":                url.QueryEscape(url.QueryEscape(secret)),
		"in percents throughout and twice": strings.ReplaceAll(percent, "%", "%25"),
		"in a page":                        html.EscapeString(secret),
		"in a page, named":                 `p4ss&sol;W&lt;rd&quot;&amp;&plus;k&percnt;41ey`,
		"in a page, decimal":               each("&#%d;"),
		"in a page, hexadecimal":           each("&#x%X;"),
		"in a page with percents":          html.EscapeString(url.QueryEscape(secret)),
		"in hexadecimal":                   hex.EncodeToString([]byte(secret)),
		"in hexadecimal, capitals":         strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"in base64":                        base64.StdEncoding.EncodeToString([]byte(secret)),
		"in base64, one behind":            base64.StdEncoding.EncodeToString([]byte("a" + secret + "bc")),
		"in base64, two behind":            base64.StdEncoding.EncodeToString([]byte("ab" + secret)),
		"in base64, three behind":          base64.StdEncoding.EncodeToString([]byte("abc" + secret + "d")),
		"in base64 for addresses":          base64.RawURLEncoding.EncodeToString([]byte("a" + secret + "b")),
		"in base64 with slashes of JSON":   strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte("user:"+secret)), "/", `\/`),
		"in base64 in lines":               base64.StdEncoding.EncodeToString([]byte("a" + secret))[:12] + "\r\n" + base64.StdEncoding.EncodeToString([]byte("a" + secret))[12:],
		"in UTF-16":                        wide,
		"in letters that nobody sees":      secret[:5] + "\u200b" + secret[5:],
	} {
		t.Run(sentence, func(t *testing.T) {
			got := r.text([]byte("the token "+written+" has expired"), maxTestResponse)
			if !masked.MatchString(got) && got != hasCredential {
				t.Errorf("shown is %q", got)
			}
		})
	}
}

// FuzzRedactor has a credential stand in any text, as it is and escaped.
func FuzzRedactor(f *testing.F) {
	for _, around := range []string{"", "%", "%2", "\\", `\u00`, "&", "&#x4", "…", "EAAB0123", "\xff"} {
		f.Add(around, around)
	}
	const secret = "EAAB0123456789abcdef"
	r := newRedactor(map[string]string{"accessToken": secret}, nil)
	f.Fuzz(func(t *testing.T, before, behind string) {
		for _, written := range []string{secret, strings.ToUpper(secret), "%45AAB0123456789abcdef", "&#69;AAB0123456789abcdef", `\u0045AAB0123456789abcdef`} {
			got := r.text([]byte(before+" "+written+" "+behind), len(before)+len(behind)+100)
			if strings.Contains(got, written) {
				t.Errorf("%q is shown", got)
			}
		}
	})
}

func TestAnAnswerWithoutCredentialsIsShownAsItIs(t *testing.T) {
	r := newRedactor(map[string]string{"accessToken": "EAAB0123456789abcdef", "short": "k1"}, nil)
	for sentence, answer := range map[string]string{
		"JSON":                   `{"error":{"message":"Invalid parameter \"x\"","code":100,"url":"https:\/\/x.example\/a%20b","at":"\u00e9"}}`,
		"a page":                 "<p>Caf&eacute; &amp; &#233; %zz % \\ \\u12</p>",
		"base64 of others":       base64.StdEncoding.EncodeToString([]byte("nothing of ours")),
		"a beginning of it":      "EAAB0123456789",
		"letters of all scripts": "Żółć 漢字 ß",
		"nothing":                "",
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := r.text([]byte(answer), maxTestResponse); got != answer {
				t.Errorf("shown is %q, want %q", got, answer)
			}
		})
	}
}

func TestTheAddressOfAWebhookIsNotRepeated(t *testing.T) {
	webhook := platforms.Platform{Type: platforms.TypeWebhook, Settings: platforms.Settings{
		Webhook: &platforms.Webhook{URL: "https://someone:hunter22@hooks.example/services/T1/B2?key=s3cr3t99"},
	}}
	r := newRedactor(nil, nil, addressSecrets(&webhook)...)
	for answer, want := range map[string]string{
		"Cannot POST /services/T1/B2":   "Cannot POST …",
		"no key s3cr3t99":               "no key …",
		"no user with hunter22":         "no user with …",
		`{"path":"\/services\/T1\/B2"}`: `{"path":"…"}`,
		"hooks.example says no":         "hooks.example says no",
	} {
		if got := r.text([]byte(answer), maxTestResponse); got != want {
			t.Errorf("shown is %q, want %q", got, want)
		}
	}
	for _, address := range []string{"https://hooks.example", "https://hooks.example/", "https://hooks.example/hook"} {
		webhook.Webhook.URL = address
		if got := addressSecrets(&webhook); len(got) > 0 {
			t.Errorf("%s has the secrets %q", address, got)
		}
	}
}

func TestAnAnswerThatIsNoTextIsNotShown(t *testing.T) {
	r := newRedactor(map[string]string{"accessToken": "EAAB0123456789abcdef"}, nil)
	for sentence, test := range map[string]struct{ answer, want string }{
		"bytes":                        {"\x1f\x8b\x08\x00", noText},
		"Latin-1":                      {"caf\xe9 au lait", noText},
		"text that is cut in a letter": {"caf\xc3", "caf"},
		"text":                         {"café", "café"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := r.text([]byte(test.answer), maxTestResponse); got != test.want {
				t.Errorf("shown is %q, want %q", got, test.want)
			}
		})
	}
}
