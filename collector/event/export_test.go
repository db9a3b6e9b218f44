package event

// ContactIn says whether a text holds an e-mail address or the phone number.
func ContactIn(text, phone string) bool {
	t := personalDataOf("", phone, "")
	return t.contactIn(text)
}

// ContactInAnySpelling says the same with no look beforehand at whether it is worth the while.
func ContactInAnySpelling(text, phone string) bool {
	t := personalDataOf("", phone, "")
	return t.contactInAnySpelling(text)
}

// Decode reads one envelope.
func Decode(body []byte) (*Envelope, error) {
	e := new(Envelope)
	if err := e.Decode(body); err != nil {
		return nil, err
	}
	return e, nil
}
