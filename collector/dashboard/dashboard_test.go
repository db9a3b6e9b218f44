package dashboard

import (
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// page is one with a script that is worth packing, and a file that is not.
func page(t *testing.T) Files {
	t.Helper()
	files, err := load(fstest.MapFS{
		"static/index.html":    {Data: []byte("<!doctype html>")},
		"static/console.html":  {Data: []byte("<!doctype html><title>")},
		"static/kit/script.js": {Data: []byte(strings.Repeat("const answer = 42;\n", 100))},
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestThePageIsWhole(t *testing.T) {
	files, err := New()
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	files.Shell().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
	if answer.Code != http.StatusOK || answer.Header().Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(answer.Body.String(), "<title>") {
		t.Errorf("got %d %v %s", answer.Code, answer.Header(), answer.Body)
	}
	for _, breach := range []string{"<script>", "<style", " style=", " onclick=", " onload=", "http://", "https://"} {
		if strings.Contains(strings.ToLower(answer.Body.String()), breach) {
			t.Errorf("the shell holds %s, which the policy keeps browsers from taking", breach)
		}
	}
}

func TestEveryFileIsServedWithItsTypeAndBoundsForTheBrowser(t *testing.T) {
	files := maps.Collect(page(t).Static())
	if got := slices.Collect(maps.Keys(files)); len(got) != 1 || got[0] != "kit/script.js" {
		t.Fatalf("got %v, want the script alone", got)
	}
	answer := httptest.NewRecorder()
	files["kit/script.js"].ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
	for header, want := range map[string]string{
		"Content-Type": "text/javascript; charset=utf-8", "Content-Security-Policy": Policy, "X-Content-Type-Options": "nosniff",
		"Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()", "Cache-Control": "no-cache", "Vary": "Accept-Encoding",
		"Content-Encoding": "",
	} {
		if got := answer.Header().Get(header); got != want {
			t.Errorf("%s: got %q, want %q", header, got, want)
		}
	}
}

func TestAFileIsPackedForWhoeverUnpacks(t *testing.T) {
	script := maps.Collect(page(t).Static())["kit/script.js"]
	for name, c := range map[string]struct {
		accept []string
		want   bool
	}{
		"a browser":                      {[]string{"gzip, deflate, br"}, true},
		"who says so in another line":    {[]string{"br", "GZIP;q=0.5"}, true},
		"not who says nothing":           {nil, false},
		"not who knows other ways":       {[]string{"br, zstd"}, false},
		"not who refuses it":             {[]string{"gzip;q=0"}, false},
		"not who refuses it in decimals": {[]string{"gzip; q=0.000, identity"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequest(http.MethodGet, "/", nil)
			request.Header["Accept-Encoding"] = c.accept
			answer := httptest.NewRecorder()
			script.ServeHTTP(answer, request)
			if got := answer.Header().Get("Content-Encoding") == "gzip"; got != c.want {
				t.Fatalf("packed: %v, want %v", got, c.want)
			}
			var text io.Reader = answer.Body
			if c.want {
				unpacked, err := gzip.NewReader(answer.Body)
				if err != nil {
					t.Fatal(err)
				}
				text = unpacked
			}
			if got, err := io.ReadAll(text); err != nil || !strings.HasPrefix(string(got), "const answer = 42;\nconst") || len(got) != 1900 {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
		})
	}
}

func TestWhatTheBrowserHasIsNotSentAgain(t *testing.T) {
	shell := page(t).Shell()
	first := httptest.NewRecorder()
	shell.ServeHTTP(first, httptest.NewRequest(http.MethodGet, "/", nil))
	tag := first.Header().Get("Etag")
	for name, c := range map[string]struct {
		has  string
		want int
	}{
		"the same":            {tag, http.StatusNotModified},
		"the same and others": {`"a", ` + tag, http.StatusNotModified},
		"another":             {`W/"a"`, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequest(http.MethodGet, "/", nil)
			request.Header.Set("If-None-Match", c.has)
			answer := httptest.NewRecorder()
			shell.ServeHTTP(answer, request)
			if answer.Code != c.want || answer.Header().Get("Etag") != tag {
				t.Errorf("got %d %s, want %d", answer.Code, answer.Header().Get("Etag"), c.want)
			}
		})
	}
	other, err := load(fstest.MapFS{"static/index.html": {Data: []byte("<!doctype html>2")}, "static/console.html": {}})
	if err != nil {
		t.Fatal(err)
	}
	changed := httptest.NewRecorder()
	other.Shell().ServeHTTP(changed, httptest.NewRequest(http.MethodGet, "/", nil))
	if changed.Header().Get("Etag") == tag {
		t.Error("another page has the same tag")
	}
}

func TestAPageThatIsNotWholeIsNotServed(t *testing.T) {
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  string
	}{
		"without a shell":         {fstest.MapFS{"static/a.js": {}}, "static/index.html is missing"},
		"without the console's":   {fstest.MapFS{"static/index.html": {}}, "static/console.html is missing"},
		"with an unknown type":    {fstest.MapFS{"static/index.html": {}, "static/a.exe": {}}, "static/a.exe: must end in .html"},
		"without anything at all": {fstest.MapFS{}, "file does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := load(c.files); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
