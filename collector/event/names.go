package event

// Names of events that Weir itself gives a meaning to.
const (
	Purchase  = "purchase"
	Refund    = "refund"
	AddToCart = "add_to_cart"
	Pageview  = "pageview"
)
