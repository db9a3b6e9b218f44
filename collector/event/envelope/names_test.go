package envelope_test

import (
	"testing"

	"github.com/weir-dev/weir/collector/event/outline"
)

// TestNamesAreExact has names sent that look like a purchase's: who is one must say what was paid, and all others are events of
// their own.
func TestNamesAreExact(t *testing.T) {
	aliases := map[string]string{"order_done": "purchase", "Purchase": "purchase", "purchase_seen": "Purchase"}
	for sentence, test := range map[string]struct {
		sent    string
		aliases map[string]string
		want    string
	}{
		"the name itself":                            {"purchase", nil, "purchase"},
		"with space around it":                       {" \t purchase\n", nil, "purchase"},
		"with space around it that cannot be seen":   {"\u200bpurchase\ufeff\u00a0\u3000", nil, "purchase"},
		"in capitals":                                {"PURCHASE", nil, "PURCHASE"},
		"with a capital":                             {"Purchase", nil, "Purchase"},
		"in full width":                              {"ｐｕｒｃｈａｓｅ", nil, "ｐｕｒｃｈａｓｅ"},
		"with a space in it":                         {"pur chase", nil, "pur chase"},
		"with a space in it that cannot be seen":     {"pur\u200bchase", nil, "pur\u200bchase"},
		"with a joiner behind it":                    {"purchase\u200d", nil, "purchase\u200d"},
		"with a soft hyphen":                         {"pur\u00adchase", nil, "pur\u00adchase"},
		"with an accent":                             {"purchase\u0301", nil, "purchase\u0301"},
		"with a letter of another script":            {"рurchase", nil, "рurchase"},
		"an alias":                                   {"order_done", aliases, "purchase"},
		"an alias with space around it":              {" order_done ", aliases, "purchase"},
		"an alias in another spelling":               {"Order_Done", aliases, "Order_Done"},
		"a lookalike that is an alias":               {"Purchase", aliases, "purchase"},
		"a lookalike that is no alias":               {"PURCHASE", aliases, "PURCHASE"},
		"an alias for a lookalike, applied once":     {"purchase_seen", aliases, "Purchase"},
		"a platform's name for a purchase":           {"CompletePayment", nil, "CompletePayment"},
		"a refund's name in capitals":                {"REFUND", nil, "REFUND"},
		"a refund's, with space that cannot be seen": {"refund\u200b", nil, "refund"},
	} {
		t.Run(sentence, func(t *testing.T) {
			name := outline.Quote(test.sent)
			paid := `{"event":` + name + `,"data":{"value":1,"currency":"EUR"}}`
			if got := accept(t, paid, test.aliases).Name; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			sent, err := decode([]byte(`{"event":` + name + `}`))
			if err != nil {
				t.Fatal(err)
			}
			_, errs := sent.Validate(now, test.aliases)
			if demands := len(errs) > 0; demands != (test.want == "purchase" || test.want == "refund") {
				t.Errorf("without money: %v", errs)
			}
		})
	}
}
