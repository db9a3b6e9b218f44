package personal

import "testing"

func TestAURLThatIsCleanLosesNothing(t *testing.T) {
	for _, finder := range []Finder{
		{}, {names: []string{"ab"}}, {names: []string{"a b"}}, {names: []string{"bä"}}, {names: []string{"zz", "ab"}},
		{phones: []string{"1234567"}, emails: []string{"a@b.co"}},
	} {
		clean := 0
		everyText("aBä?#&=/+ 1@", 4, func(text string) {
			if !finder.isClean(text) {
				return
			}
			clean++
			if got := finder.cleanParts(text); got != text {
				t.Errorf("%+v: %q is taken for clean, but becomes %q", finder, text, got)
			}
		})
		if clean == 0 {
			t.Errorf("%+v: no text at all is taken for clean", finder)
		}
	}
}

// everyText calls yield with every text of at most length bytes of an alphabet.
func everyText(alphabet string, length int, yield func(string)) {
	var extend func([]byte)
	extend = func(text []byte) {
		yield(string(text))
		if len(text) == length {
			return
		}
		for i := range len(alphabet) {
			extend(append(text, alphabet[i]))
		}
	}
	extend(make([]byte, 0, length))
}
