package personal_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/event/personal"
)

func TestTells(t *testing.T) {
	for name, test := range map[string]struct {
		member, value string
		want          bool
	}{
		"a name":                          {"phone", `"0"`, true},
		"a name in capitals":              {"LAST_NAME", `"x"`, true},
		"a name in two words":             {"Shipping Address", `"x"`, true},
		"a name with hyphens":             {"date-of-birth", `"x"`, true},
		"a name that is a list's":         {"emails", `["x"]`, true},
		"a name within":                   {"buyer", `{"of":[{"firstName":"x"}]}`, true},
		"a number with a country's code":  {"note", `"+49 (30) 123-4567"`, true},
		"a number in a list":              {"note", `["a","+4930 1234567"]`, true},
		"an e-mail address":               {"note", `"of ada@example.com"`, true},
		"a name that only begins so":      {"phone_case", `"red"`, false},
		"a product's name":                {"name", `"Lamp"`, false},
		"a product's number":              {"ean", `"4006381333931"`, false},
		"a number that is too short":      {"size", `"+5"`, false},
		"a number with text":              {"dose", `"+12345678 mg"`, false},
		"an amount":                       {"height", `12345678`, false},
		"whom a product is for":           {"gender", `"women"`, false},
		"a list of an object with others": {"parts", `[{"colour":"red"},null,true]`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := personal.Tells(test.member, jsontext.Value(test.value)); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
