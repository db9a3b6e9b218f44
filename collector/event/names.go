package event

// Names of events that Weir itself gives a meaning to.
const (
	Purchase  = "purchase"
	Refund    = "refund"
	AddToCart = "add_to_cart"
	Pageview  = "pageview"
)

// wellKnownNames are the names that the stream writes as a number: their index plus one, as in the enum
// WellKnownName of entry.proto. New names are appended; a number is never given to another name.
var wellKnownNames = [...]string{
	Purchase, Refund, AddToCart, Pageview,
	"view_content", "search", "begin_checkout", "add_payment_info", "lead", "sign_up", "subscribe",
}
