package event

import "testing"

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

func TestAURLThatIsCleanLosesNothing(t *testing.T) {
	for _, person := range []personalData{{}, {name: "ab"}, {name: "a b"}, {name: "bä"}, {phone: "1234567", email: "a@b.co"}} {
		clean := 0
		everyText("aBä?#&=/+ 1@", 4, func(text string) {
			if !person.isClean(text) {
				return
			}
			clean++
			if got := person.cleanParts(text); got != text {
				t.Errorf("%+v: %q is taken for clean, but becomes %q", person, text, got)
			}
		})
		if clean == 0 {
			t.Errorf("%+v: no text at all is taken for clean", person)
		}
	}
}

func TestAPlainAmountIsTheAmount(t *testing.T) {
	plain := 0
	check := func(text string) {
		got, ok := parsePlainAmount(text)
		if !ok {
			return
		}
		plain++
		if want, err := parseAmount(text); err != nil || got != want {
			t.Errorf("%q is taken for the plain amount %d, but is %d, %v", text, got, want, err)
		}
	}
	everyText("019.-e ", 6, check)
	for _, text := range []string{"99999999999.9999", "100000000000.000", "99999999999", "999999999999", "0000000000012.50", "9999999999999999",
		"1000000000000000", "999999999999999", "922337203685478", "1844674407370956"} {
		check(text)
	}
	if plain == 0 {
		t.Error("no text at all is taken for plain")
	}
}
