package personal

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// shortestPhone is how many digits a phone number has at least; fewer are any number.
const shortestPhone = 7

// phoneIn looks for the phone number, however it is punctuated and in whatever digits, with or without its country code,
// and whatever numbers stand beside it.
func (f *Finder) phoneIn(text string) bool {
	if len(f.phones) == 0 && !f.all {
		return false
	}
	// Most texts have few digits, which need no memory of their own.
	run := make([]byte, 0, 64)
	groups := make([]int, 0, 16) // where in the run there was something between two digits
	apart := true
	for _, r := range strings.ReplaceAll(text, "(0)", "") {
		switch value, isDigit := digitValue(r); {
		case isDigit:
			if apart {
				groups = append(groups, len(run))
			}
			run, apart = append(run, '0'+value), false
		case unicode.IsLetter(r):
			if len(run) >= shortestPhone && f.isPhone(run, groups) {
				return true
			}
			run, groups, apart = run[:0], groups[:0], true
		default:
			apart = true
		}
	}
	return f.isPhone(run, groups)
}

// digitValue returns the value of a decimal digit of any script.
func digitValue(r rune) (value byte, isDigit bool) {
	if r < utf8.RuneSelf {
		return byte(r - '0'), r >= '0' && r <= '9'
	}
	return digitOf(r)
}

func digitOf(r rune) (value byte, isDigit bool) {
	if !unicode.IsDigit(r) {
		return 0, false
	}
	for _, digits := range unicode.Nd.R16 { // each is of as many tens of digits as follow one another
		if r >= rune(digits.Lo) && r <= rune(digits.Hi) {
			return byte(r-rune(digits.Lo)) % 10, true
		}
	}
	for _, digits := range unicode.Nd.R32 {
		if r >= rune(digits.Lo) && r <= rune(digits.Hi) {
			return byte(r-rune(digits.Lo)) % 10, true
		}
	}
	return 0, false
}

// longestCountryCode is how many digits of a phone number may be its country's.
const longestCountryCode = 3

// isPhone says whether one of the phone numbers is among a text's digits: without its country code anywhere, or the end of it
// as so many whole groups of digits.
func (f *Finder) isPhone(run []byte, groups []int) bool {
	return len(run) >= shortestPhone && (f.all || slices.ContainsFunc(f.phones, func(phone string) bool { return isIn(phone, run, groups) }))
}

func isIn(phone string, run []byte, groups []int) bool {
	national := phone[min(longestCountryCode, max(0, len(phone)-shortestPhone)):]
	if strings.Contains(string(run), national) {
		return true
	}
	for i, from := range groups {
		for j := i + 1; j <= len(groups); j++ {
			to := len(run)
			if j < len(groups) {
				to = groups[j]
			}
			local := strings.TrimLeft(string(run[from:min(to, from+32)]), "0")
			if len(local) >= shortestPhone && strings.HasSuffix(phone, local) {
				return true
			}
			if to-from > len(phone)+2 {
				break
			}
		}
	}
	return false
}

// MayHoldPhone says whether a text has as many digits, in whatever script, as a phone number has at least: one that could
// not be read may be in it.
func MayHoldPhone(text string) bool {
	digits := 0
	for _, r := range text {
		if _, is := digitValue(r); is {
			digits++
		}
	}
	return digits >= shortestPhone
}
