package personal

import (
	"iter"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// appendUnread has what is found in texts looked for, and says whether there is more than that.
func appendUnread(all, texts []string, in func(text string) iter.Seq[string]) (_ []string, more bool) {
	if len(texts) == 0 {
		return all, false // as nearly always, and what follows needs memory
	}
	return appendFound(all, texts, in)
}

func appendFound(all, texts []string, in func(text string) iter.Seq[string]) (_ []string, more bool) {
	unread := 0
	for _, text := range texts {
		for found := range in(norm.NFKC.String(text)) {
			if unread++; unread > maxUnread {
				return all, true
			}
			all = append(all, found)
		}
	}
	return all, false
}

// unreadAddresses yields what of a text may be e-mail addresses, of whatever form: words with an "@" within.
func unreadAddresses(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if strings.IndexByte(text, '@') < 0 {
			return
		}
		parted := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("<>()[]{}\"',;:|=\\", r) }
		for word := range strings.FieldsFuncSeq(roundAt.ReplaceAllLiteralString(lower(text), "@"), parted) {
			if at := strings.IndexByte(word, '@'); at > 0 && at < len(word)-1 && !yield(word) {
				return
			}
		}
	}
}

// unreadNumbers yields what of a text may be phone numbers, as digits: of what stands between letters all, and each part where
// there may be several.
func unreadNumbers(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for run := range strings.FieldsFuncSeq(strings.ReplaceAll(text, "(0)", ""), unicode.IsLetter) {
			if !MayHoldPhone(run) {
				continue
			}
			whole, last := "", ""
			for part := range strings.FieldsFuncSeq(run, partsNumbers) {
				last = strings.Map(digitsAlone, part)
				if number := strings.TrimLeft(last, "0"); len(number) >= shortestPhone && !yield(number) {
					return
				}
				whole += last
			}
			if number := strings.TrimLeft(whole, "0"); whole != last && len(number) >= shortestPhone && !yield(number) {
				return
			}
		}
	}
}

// partsNumbers says whether a character may stand between two numbers; it may stand within one as well.
func partsNumbers(r rune) bool { return strings.ContainsRune(",;/|\"\\", r) }

func digitsAlone(r rune) rune {
	value, is := digitValue(r)
	if !is {
		return -1
	}
	return rune('0' + value)
}
