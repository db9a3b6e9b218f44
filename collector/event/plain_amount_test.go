package event

import "testing"

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
