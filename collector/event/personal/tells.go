package personal

import (
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// named are the names of members that tell of a person, in lower case without what stands between their words.
var named = func() map[string]bool {
	names := map[string]bool{}
	for name := range strings.FieldsSeq(`
		email emails emailaddress emailid mail mailaddress useremail customeremail contactemail buyeremail
		phone phones phonenumber phoneno telephone telephonenumber tel mobilephone mobilenumber cellphone fax faxnumber
		userphone customerphone contactphone buyerphone whatsapp
		firstname lastname middlename fullname givenname familyname surname forename maidenname customername buyername
		address addresses street streetaddress address1 address2 addressline1 addressline2 homeaddress postaladdress
		billingaddress shippingaddress deliveryaddress
		birthday birthdate dateofbirth dob yearofbirth
		ssn socialsecuritynumber socialsecurity nationalid taxid passport passportnumber driverslicense iban creditcard cardnumber`) {
		names[name] = true
	}
	return names
}()

// Tells says whether a member of the caller's own tells of a person: by its name, or by a value that is a telephone number with
// its country's code or an e-mail address. Of an object or a list, what is within counts.
func Tells(name string, value jsontext.Value) bool {
	return named[nameKey(name)] || tellsWithin(value)
}

// nameKey is a name without its case and what stands between its words.
func nameKey(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

func tellsWithin(value jsontext.Value) bool {
	switch value.Kind() {
	case '"':
		var text string
		return json.Unmarshal(value, &text) == nil && (isInternationalNumber(text) || new(Finder).ContactIn(text))
	case '[':
		var elements []jsontext.Value
		return json.Unmarshal(value, &elements) == nil && slices.ContainsFunc(elements, tellsWithin)
	case '{':
		var members map[string]jsontext.Value
		if json.Unmarshal(value, &members) != nil {
			return false
		}
		for name, member := range members {
			if Tells(name, member) {
				return true
			}
		}
	}
	return false
}

// isInternationalNumber says whether a text is a telephone number with its country's code and nothing else.
func isInternationalNumber(text string) bool {
	text = Trim(text)
	if !strings.HasPrefix(text, "+") {
		return false
	}
	digits := 0
	for _, r := range text[1:] {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case !strings.ContainsRune(" -./()\u00a0", r):
			return false
		}
	}
	return digits >= 8 && digits <= 15
}
