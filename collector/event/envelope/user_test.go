package envelope

import "testing"

func TestAPlainEmailIsAnEmail(t *testing.T) {
	plain := 0
	everyText("aZ0.-_+@ \"", 5, func(text string) {
		if !isPlainEmail(text) {
			return
		}
		plain++
		if !isEmail(text) {
			t.Errorf("%q is taken for plain, but is no e-mail address", text)
		}
	})
	if plain == 0 {
		t.Error("no text at all is taken for plain")
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
