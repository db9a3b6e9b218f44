package validation

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Describe makes one error of each thing that is wrong, ordered by their fields, where the API server's code may find several errors in
// one value of the wrong type. Its detail says what would be right. No error repeats the value, which may be a secret in the wrong place.
func Describe(errs field.ErrorList) field.ErrorList {
	var wrongTypes []string
	for _, err := range errs {
		if err.Type == field.ErrorTypeTypeInvalid {
			wrongTypes = append(wrongTypes, err.Field)
		}
	}
	follows := func(err *field.Error) bool {
		return err.Type != field.ErrorTypeTypeInvalid && slices.ContainsFunc(wrongTypes, func(path string) bool {
			return err.Field == path || strings.HasSuffix(err.Detail, " in "+path)
		})
	}
	var found field.ErrorList
	for _, err := range errs {
		if !follows(err) {
			found = append(found, describe(err))
		}
	}
	// The rules are evaluated in no order.
	slices.SortStableFunc(found, func(a, b *field.Error) int { return cmp.Compare(a.Field, b.Field) })
	return found
}

func describe(err *field.Error) *field.Error {
	path, message := err.Field, err.Detail
	if path == "<nil>" {
		path = ""
	}
	message = strings.TrimPrefix(message, path+" in body ")
	// A rule that could not be evaluated says why, then itself.
	if _, rule, found := strings.Cut(message, " evaluating rule: "); found {
		message = rule
	}
	switch err.Type {
	case field.ErrorTypeRequired:
		if message == "" {
			message = "is required"
		}
	case field.ErrorTypeDuplicate:
		message = "repeats an earlier item; must be unique"
	case field.ErrorTypeNotSupported:
		message = "must be one of " + strings.TrimPrefix(message, "supported values: ")
	case field.ErrorTypeTypeInvalid:
		message, _, _ = strings.Cut(message, ": \"") // the type, or the value, that was found
	}
	return &field.Error{Type: err.Type, Field: path, Detail: message, BadValue: field.OmitValueType{}}
}

// unknownField says which fields there are beside the unknown one at path.
func (v *Validator) unknownField(path string) string {
	segments := strings.Split(path, ".")
	at := v.structural
	for _, segment := range segments[:len(segments)-1] {
		name, _, isItem := strings.Cut(segment, "[")
		next, known := at.Properties[name]
		if !known {
			return "is no field of a Property"
		}
		at = &next
		if isItem && at.Items != nil {
			at = at.Items
		}
	}
	return "is no field here; the fields are " + strings.Join(slices.Sorted(maps.Keys(at.Properties)), ", ")
}
