package envelope_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/envelope"
)

// acceptText accepts a lead of jane's in which a text stands wherever a caller may write one.
func acceptText(t testing.TB, text string) event.Event {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"event": "lead", "user": jane, "event_id": text, "client_id": text,
		"data": map[string]any{
			"order_id": text, "content_id": text, "content_name": text,
			"contents": []any{map[string]any{"id": text, "name": text, "category": text, "note": text, "more": []any{map[string]any{"x": text}}}},
		},
		"context": map[string]any{
			"page_url": "https://a.example/" + url.PathEscape(text) + "?q=" + url.QueryEscape(text) + "#" + url.QueryEscape(text),
			"referrer": "https://b.example/?r=" + text, "user_agent": text, "utm_source": text, "utm_medium": text, "utm_campaign": text, "utm_term": text,
			"utm_content": text, "click_ids": map[string]any{"gclid": text},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return accept(t, string(body), nil)
}

// left lists where something of a text that acceptText was given is kept.
func left(e *event.Event) map[string]string {
	item, kept := e.Contents[0], map[string]string{}
	for place, text := range map[string]string{
		"content_id": e.ContentID, "content_name": e.ContentName, "item's id": item.ID, "item's name": item.Name, "category": item.Category,
		"extra": string(item.Extra), "page_url": strings.Trim(strings.TrimPrefix(e.Context.PageURL, "https://a.example/"), "?q=#"),
		"referrer": strings.TrimPrefix(e.Context.Referrer, "https://b.example/"), "user_agent": e.Context.UserAgent, "utm_source": e.Context.UTMSource,
		"utm_medium": e.Context.UTMMedium, "utm_campaign": e.Context.UTMCampaign, "utm_term": e.Context.UTMTerm,
		"utm_content": e.Context.UTMContent, "gclid": e.Context.ClickIDs["gclid"],
	} {
		if text != "" {
			kept[place] = text
		}
	}
	for place, id := range map[string]string{"event_id": e.ID, "client_id": e.ClientID, "order_id": e.OrderID} {
		if len(id) != 64 || strings.Trim(id, "0123456789abcdef") != "" {
			kept[place] = id
		}
	}
	return kept
}

func std(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func TestSpellingsOfAContact(t *testing.T) {
	for name, text := range map[string]string{
		"an e-mail address":                      "joe@example.com",
		"in capitals":                            "JOE@EXAMPLE.COM",
		"percent-encoded":                        "joe%40example.com",
		"percent-encoded twice":                  "joe%2540example.com",
		"percent-encoded three times":            "joe%252540example.com",
		"percent-encoded six times":              "joe%252525252540example%252525252eCOM",
		"percent-encoded for ever":               "joe%" + strings.Repeat("25", 60) + "40example.com",
		"every letter percent-encoded":           "%6a%6f%65%40%65%78%61%6d%70%6c%65%2e%63%6f%6d",
		"percent and u":                          "joe%u0040example.com",
		"a decimal entity":                       "joe&#64;example.com",
		"a decimal entity with zeros":            "joe&#0000064;example.com",
		"a decimal entity without its semicolon": "joe&#64example.com",
		"a hexadecimal entity":                   "joe&#x40;example.com",
		"a named entity":                         "joe&commat;example.com",
		"a named entity without its semicolon":   "joe&commatexample.com",
		"an entity for the point":                "joe@example&period;com",
		"an entity in an entity":                 "joe&amp;#64;example.com",
		"an entity percent-encoded":              "joe%26%2364%3Bexample.com",
		"in full width":                          "ｊｏｅ＠ｅｘａｍｐｌｅ．ｃｏｍ",
		"an at sign in full width":               "joe＠example.com",
		"a small at sign":                        "joe﹫example.com",
		"letters of mathematics":                 "𝐣𝐨𝐞@𝐞𝐱𝐚𝐦𝐩𝐥𝐞.𝐜𝐨𝐦",
		"an ideographic full stop":               "joe@example。com",
		"a zero-width space":                     "joe\u200b@\u200bexample.com",
		"a zero-width joiner within":             "joe@exam\u200dple.c\u2060om",
		"a soft hyphen":                          "joe@exam\u00adple.\u00adcom",
		"a byte order mark":                      "joe@\ufeffexample.com",
		"marks of direction":                     "\u202ejoe@\u200eexample.com\u202c",
		"a variation selector":                   "joe@\ufe0fexample.com",
		"a tag character":                        "joe@\U000e0020example.com",
		"a combining grapheme joiner":            "joe@exa\u034fmple.com",
		"an escape of JSON":                      `joe\u0040example.com`,
		"an escape of JSON in capitals":          `joe\U00000040example.com`,
		"an escape with braces":                  `joe\u{0040}example.com`,
		"an escape of two digits":                `joe\x40example.com`,
		"JSON in JSON":                           `{"mail":"joe\\u0040example.com"}`,
		"a quoted local part":                    `"joe doe"@example.com`,
		"a quoted local part in JSON":            `{"mail": "\"joe doe\"@example.com"}`,
		"an address as the domain":               "joe@[192.0.2.1]",
		"an address of version 6 as the domain":  "joe@[IPv6:2001:db8::1]",
		"an address without brackets":            "joe@192.0.2.1",
		"a punycode domain":                      "joe@xn--bcher-kva.example",
		"a domain of other letters":              "joe@bücher.example",
		"a domain with combining marks":          "joe@उदाहरण.परीक्षा",
		"a local part of other letters":          "用户@例え.テスト",
		"Base64":                                 std("joe@example.com"),
		"Base64 behind something":                "mail_" + std("joe@example.com"),
		"Base64 for URLs":                        base64.RawURLEncoding.EncodeToString([]byte("jöe>?~@example.com")),
		"Base64 without padding":                 base64.RawStdEncoding.EncodeToString([]byte("mail=joe@example.com")),
		"Base64 twice":                           std(std("joe@example.com")),
		"Base64 of an encoded address":           std("joe%2540example.com"),
		"Base64 of JSON":                         std(`{"mail":"joe@example.com"}`),
		"Base64, percent-encoded":                url.QueryEscape(std("joe@example.co")),
		"spaces around":                          "joe @ example.com",
		"a space before":                         "joe @example.com",
		"a space behind":                         "joe@ example.com",
		"encoded spaces around":                  "joe%20@%20example.com",
		"a plus for each space":                  "joe+@+example.com",
		"at in brackets":                         "joe (at) example.com",
		"at and dot in brackets":                 "joe[AT]example[dot]com",
		"a mail link":                            "mailto:joe@example.com?subject=x",
		"among other things":                     "see joe@example.com, please",
		"this person's address without a domain": "jane.doe@intranet",
		"the same in full width":                 "ｊａｎｅ．ｄｏｅ＠intranet",
		"this person's number":                   "+4915112345678",
		"with two zeros":                         "004915112345678",
		"a national number":                      "0151 12345678",
		"without the area code":                  "12345678",
		"behind another number":                  "order 12345 0151 12345678",
		"before another number":                  "0151-12345678 / 99",
		"between others":                         "7 0151 12345678 2026",
		"glued to another":                       "12345015112345678",
		"the local number behind another":        "99 12345678",
		"with the trunk zero in brackets":        "+49 (0)151 12345678",
		"with unusual hyphens":                   "0151–1234‑5678",
		"with points, bars and underscores":      "0151·1234|5_678",
		"with invisible characters":              "0151\u200b1234\u00ad5678",
		"in Arabic digits":                       "٠١٥١ ١٢٣٤٥٦٧٨",
		"in Persian digits":                      "۰۱۵۱۱۲۳۴۵۶۷۸",
		"in Devanagari digits":                   "०१५११२३४५६७८",
		"in full-width digits":                   "０１５１１２３４５６７８",
		"percent-encoded digits":                 "%30%31%35%31%31%32%33%34%35%36%37%38",
		"digits as entities":                     "0151&#49;&#50;345678",
		"the number in Base64":                   std("+4915112345678"),
		"Base64 with a space in it":              "amFuZS5 kb2VAZXhhbXBsZS5jb20=",
		"Base64 with an encoded line feed":       "amFuZS5kb2VA%0D%0AZXhhbXBsZS5jb20%3D",
		"Base64 with a line feed as an entity":   "amFuZS5kb2VA&#10;ZXhhbXBsZS5jb20=",
		"Base64 with a line feed as an escape":   `amFuZS5kb2VA\nZXhhbXBsZS5jb20=`,
		"Base64 with a plus for a space":         "amFuZS5kb2VA+ZXhhbXBsZS5jb20=",
		"a backslash before the at":              `joe\@example.com`,
		"a backslash before the point":           `joe@example\.com`,
		"a backslash before an escape":           `joe\%40example.com`,
		"an encoded backslash":                   "joe@example%5C.com",
		"backslashes before brackets":            `joe\(at\)example.com`,
		"an octal escape":                        `joe\100example\056com`,
		"an escape of CSS":                       `joe\40 example\00002e com`,
		"an escape with x and braces":            `joe\x{40}example.com`,
		"a domain in Latin-1":                    "joe@m%FCnchen.de",
		"a domain of an emoji":                   "joe@i❤.ws",
		"a point in brackets":                    "joe@example[.]com",
		"an at in brackets":                      "joe[@]example.com",
		"at in two brackets":                     "joe((at))example((dot))com",
		"at behind an unbreakable space":         "joe(\u00a0at\u00a0)example.com",
		"a line separator at the at":             "joe\u2028@example.com",
		"a Braille blank":                        "joe\u2800@example.com",
		"an object's place":                      "joe@exam\ufffcple.com",
	} {
		t.Run(name, func(t *testing.T) {
			e := acceptText(t, text)
			for place, kept := range left(&e) {
				t.Errorf("%q is kept in %s as %q", text, place, kept)
			}
		})
	}
}

func TestAnEventIsNotNamedByAContact(t *testing.T) {
	for _, name := range []string{
		"signup joe@example.com", "joe%40example.com", "joe＠example.com",
		"call +4915112345678", "0151 123 456 78", "tel:4915112345678", std("+4915112345678"),
	} {
		body, err := json.Marshal(map[string]any{"event": name, "user": jane})
		if err != nil {
			t.Fatal(err)
		}
		sent, err := decode(body)
		if err != nil {
			t.Fatal(err)
		}
		if _, errs := sent.Validate(now, nil); len(errs) != 1 || errs[0].Field != "event" || strings.Contains(errs.Error(), "joe") || strings.Contains(errs.Error(), "151") {
			t.Errorf("%q: got %v, want one error that does not repeat it", name, errs)
		}
	}
}

func TestHarmlessTextsStay(t *testing.T) {
	for name, text := range map[string]string{
		"a SKU": "SKU-2024-00123456-XL", "a SKU with points": "AB.98.765.432", "an order number": "4711-000012345678901",
		"a UUID": "6f1d3c52-3b0a-4f0e-9a51-0c5f7a3f9e21", "a UUID in capitals": "6F1D3C52-3B0A-4F0E-9A51-0C5F7A3F9E21",
		"a ULID": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "a date": "2026-11-20T12:00:00Z", "a GTIN": "4006381333931", "a price": "1.299,00 €",
		"coordinates": "52.520008,13.404954", "a SHA-256": "b5fc85e55755f9e0d030a10ab4429b6b2944855f9a0d60077fe832becbc41d72",
		"a cookie": "GA1.1.1234567890.1700000000", "fbp": "fb.1.1700000000123.1098115397", "another phone number": "+442079460958",
		"a price each": "2 @ 19.99", "a version": "react@18.2.0", "an image for fine screens": "logo@2x.png", "a handle": "@weir_dev",
		"a lens": "50mm@1.8", "a percentage": "100% wool, 50% off", "an ampersand": "Salt & Pepper; M&Ms", "an entity": "Fish &amp; Chips",
		"brackets": "T-Shirt (attractive) [attic]", "other letters": "Größe Ω, für Müller, 東京, кроссовки", "an emoji": "Lamp 💡 ❤️",
		"a click id": "Cj0KCQiA1ZGcBhCoARIsAGQ0kkqVQ8Zk2v3", "words with capitals": "AppleWebKit GoogleAnalytics BackToSchoolSale",
		"a user agent":       "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36",
		"an image in Base64": "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7",
		"text in Base64":     std("just some harmless words"), "a path on Windows": `C:\new\table`, "a range": "18:00–20:30",
	} {
		t.Run(name, func(t *testing.T) {
			e := acceptText(t, text)
			if e.ID != text || e.ClientID != text || e.OrderID != text || e.ContentName != text || e.Contents[0].Name != text ||
				e.Context.UTMCampaign != text || e.Context.UserAgent != text || e.Contents[0].Extra == nil {
				t.Errorf("%q is not kept: %q, %+v", text, left(&e), e.Context)
			}
		})
	}
}

// encodings are those that FuzzSpellings nests; each may be undone by whoever gets the text.
var encodings = []func(string) string{
	func(s string) string { return s },
	url.QueryEscape,
	func(s string) string { return strings.ReplaceAll(url.PathEscape(s), "@", "%40") },
	html.EscapeString,
	func(s string) string { return strings.ReplaceAll(s, "@", "&#64;") },
	func(s string) string { return strings.ReplaceAll(s, "@", `\u0040`) },
	func(s string) string { return strings.ReplaceAll(s, "@", "＠") },
	func(s string) string { return strings.ReplaceAll(s, "e", "e\u200b") },
	std,
	func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
	func(s string) string { return fmt.Sprintf("%q", s) },
}

// FuzzSpellings encodes an address up to four times: it is never kept.
func FuzzSpellings(f *testing.F) {
	f.Add([]byte{0}, "")
	f.Add([]byte{8, 1, 4}, "see ")
	f.Add([]byte{1, 1, 1, 1}, "x=")
	f.Add([]byte{7, 8, 9, 5}, "ref: ")
	f.Add([]byte{6, 3, 10, 2}, "a ")
	f.Fuzz(func(t *testing.T, nested []byte, before string) {
		text := "zq9x.marked@zq9x-mail.example"
		for _, encoding := range nested[:min(len(nested), 4)] {
			text = encodings[int(encoding)%len(encodings)](text)
		}
		text = strings.ToValidUTF8(before, "") + " " + text
		body, err := json.Marshal(map[string]any{"event": "lead", "data": map[string]any{"content_name": text}})
		if err != nil {
			t.Fatal(err)
		}
		sent, err := decode(body)
		if err != nil {
			t.Fatal(err)
		}
		valid, errs := sent.Validate(now, nil)
		if len(errs) > 0 {
			return // too long
		}
		if e := envelope.Pseudonymise(valid, acceptance); e.ContentName != "" {
			t.Errorf("%q is kept after %v", text, nested)
		}
	})
}

func BenchmarkHostileSpelling(b *testing.B) {
	for name, text := range map[string]string{
		"percent": "%" + strings.Repeat("25", 1000), "Base64": strings.Repeat("QUFB", 500), "entities": strings.Repeat("&amp;", 400),
	} {
		b.Run(name, func(b *testing.B) {
			body, _ := json.Marshal(map[string]any{"event": "lead", "context": map[string]any{"page_url": "/" + text}})
			for b.Loop() {
				if e := accept(b, string(bytes.Clone(body)), nil); e.Name == "" {
					b.Fatal("not accepted")
				}
			}
		})
	}
}
