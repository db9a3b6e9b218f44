package event

import "strings"

// currencyCodes are the alphabetic codes of ISO 4217's list of current currencies and funds by their minor unit: how
// many decimals an amount has that can be paid. XTS and XXX, which stand for no money, are left out. ANG and BGN were
// withdrawn in 2025 and 2026: refunds of older orders still carry them.
var currencyCodes = []struct {
	decimals int
	codes    string
}{
	{0, "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"},
	{2, "" +
		"AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE " +
		"CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL " +
		"HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR " +
		"MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK " +
		"SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD " +
		"XCD XCG YER ZAR ZMW ZWG"},
	{3, "BHD IQD JOD KWD LYD OMR TND"},
	{4, "CLF UYW"},
	// Metals, funds' units of account and drawing rights have no minor unit: they keep all that an [Amount] holds.
	{amountDigits, "XAG XAU XBA XBB XBC XBD XDR XPD XPT XSU XUA"},
}

// currency is an entry of ISO 4217.
type currency struct {
	// code is the one text of it.
	code string
	// minorUnit is the smallest amount that can be paid.
	minorUnit Amount
}

var currencies = func() map[string]currency {
	all := map[string]currency{}
	for _, group := range currencyCodes {
		unit := Amount(1)
		for range amountDigits - group.decimals {
			unit *= 10
		}
		for code := range strings.FieldsSeq(group.codes) {
			all[code] = currency{code, unit}
		}
	}
	return all
}()

// CurrencyCode returns the one text of an upper-case alphabetic code of ISO 4217, which costs no allocation.
func CurrencyCode(code []byte) (text string, ok bool) {
	listed, ok := currencies[string(code)]
	return listed.code, ok
}

// IsCurrency says whether code is an upper-case alphabetic code of ISO 4217.
func IsCurrency(code string) bool { return currencies[code].code != "" }

// MinorUnit returns the smallest amount that can be paid in a currency of ISO 4217: a cent of EUR, a whole JPY, a
// thousandth of KWD. What has no minor unit, or is no currency, has the smallest [Amount].
func MinorUnit(code string) Amount { return max(currencies[code].minorUnit, 1) }
