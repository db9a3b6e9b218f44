package personal

import (
	"encoding/base64"
	"html"
	"net/url"
	"strings"
	"testing"
)

// What the look beforehand lets pass has nothing in it, and what it looks at closely it judges like the search itself.
func FuzzALookBeforehandLosesNothing(f *testing.F) {
	known := (&Person{Phones: []Datum{{Text: "+306912345678"}}}).Finder()
	for _, text := range []string{
		"6912345678", "tel 691 234-5678 ok", "GA1.2.1234567890.1700000000", "a=1&b=306912345678", "a&num;6912345678", "jane(\tat)shop.example",
		"jane [at] shop [dot] example", "691\x002345678", "６９１２３４５６７８", "order 1234567(dot)89", "jane@shop.example", "&commat", "MzA2OTEyMzQ1Njc4", "%40",
		"fb.1.1700000000000.AbCdEfGhIj", "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0", "", "(0)6912345678", "äöü 6912345678",
	} {
		f.Add(text)
		f.Add(base64.StdEncoding.EncodeToString([]byte(text)))
		f.Add(url.QueryEscape(text))
		f.Add(html.EscapeString(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "") // as the decoder of events leaves it
		if got, want := known.ContactIn(text), known.contactInAnySpelling(text); got != want {
			t.Errorf("a contact in %q: %v, by the search itself %v", text, got, want)
		}
	})
}
