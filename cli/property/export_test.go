package property

// AdviceOf is adviceOf, for the test that every reason has one.
func AdviceOf(reason string) string { return adviceOf(reason) }
