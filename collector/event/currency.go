package event

import "strings"

// currencyCodes are the alphabetic codes of ISO 4217's list of current currencies and funds, without XTS and
// XXX, which stand for no money. ANG and BGN were withdrawn in 2025 and 2026: refunds of older orders still
// carry them.
const currencyCodes = "" +
	"AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD " +
	"CAD CDF CHE CHF CHW CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL " +
	"GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD " +
	"KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO " +
	"NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD " +
	"SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD USN UYI UYU UYW UZS VED VES VND VUV " +
	"WST XAD XAF XAG XAU XBA XBB XBC XBD XCD XCG XDR XOF XPD XPF XPT XSU XUA YER ZAR ZMW ZWG"

// currencies maps every code to itself, so that a code read from bytes costs no allocation.
var currencies = func() map[string]string {
	codes := map[string]string{}
	for code := range strings.FieldsSeq(currencyCodes) {
		codes[code] = code
	}
	return codes
}()

// IsCurrency says whether code is an upper-case alphabetic code of ISO 4217.
func IsCurrency(code string) bool { return currencies[code] != "" }
