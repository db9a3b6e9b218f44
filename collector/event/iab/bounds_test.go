package iab_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/event/iab"
)

// pairs are so many ranges, each of the same vendors.
func pairs(count, first, last int) [][2]int {
	list := make([][2]int, count)
	for i := range list {
		list[i] = [2]int{first, last}
	}
	return list
}

// hostile are strings that cost much where ranges are written out, numbers believed, or lists made for each restriction.
func hostile() map[string]string {
	manyRestrictions := make([]string, 4095)
	for i := range manyRestrictions {
		manyRestrictions[i] = restriction(2, 0, [2]int{1, 65535})
	}
	emptyRestrictions := make([]string, 4095)
	for i := range emptyRestrictions {
		emptyRestrictions[i] = restriction(2, 0)
	}
	falling := make([][2]int, 4095)
	for i := range falling {
		falling[i] = [2]int{2 * (4096 - i), 2 * (4096 - i)}
	}
	return map[string]string{
		"ranges of all vendors, again and again":     core{vendors: rangeField(65535, pairs(4095, 1, 65535)...)}.text(),
		"ranges from the last to the first":          core{vendors: rangeField(65535, falling...), liVendors: rangeField(65535, falling...)}.text(),
		"restrictions of all vendors":                core{restrictions: manyRestrictions}.text(),
		"restrictions of nobody":                     core{restrictions: emptyRestrictions}.text(),
		"restrictions of many ranges":                core{restrictions: []string{restriction(2, 0, falling...), restriction(3, 0, falling...)}}.text(),
		"the promise of many ranges":                 core{vendors: number(65535, 16) + "1" + number(4095, 12)}.text(),
		"the promise of many restrictions":           core{restrictionsAreCount: 4095}.text(),
		"bits of all vendors":                        core{vendors: bitfield(65535)}.text(),
		"many segments":                              core{}.text() + strings.Repeat(".IAAA", 100_000),
		"many empty segments":                        core{}.text() + strings.Repeat(".", 100_000),
		"many letters":                               core{}.text() + strings.Repeat("A", 1_000_000),
		"no base64url at the end of many letters":    core{}.text() + strings.Repeat("A", 1_000_000) + "=",
		"many sections":                              single(id6, "1YNN") + strings.Repeat("~1YNN", 100_000),
		"as many sections as there can be ids":       "DB" + text(number(1, 12)+"1"+"11"+fibonacci(65534)) + strings.Repeat("~Later", 65535),
		"a header of all sections":                   "DB" + text(number(1, 12)+"1"+"11"+fibonacci(65534)) + "~1YNN",
		"Canadian ranges of all vendors":             single(id5, text(canada+number(65535, 16)+"1"+number(1, 12)+"1"+"11"+fibonacci(65534)+bitfield(0)+number(0, 12))),
		"the promise of many Canadian ranges":        single(id5, text(canada+number(65535, 16)+"1"+number(4095, 12))),
		"the promise of many Canadian restrictions":  single(id5, text(canada+bitfield(0)+bitfield(0)+number(4095, 12))),
		"a Canadian number that never ends":          single(id5, text(canada+number(65535, 16)+"1"+number(1, 12)+strings.Repeat("0", 100_000))),
		"many Canadian restrictions of many vendors": single(id5, text(canada+bitfield(0)+bitfield(0)+number(2000, 12)+strings.Repeat(number(2, 6)+number(1, 2)+bitfield(99, 99), 2000))),
	}
}

// fibonacci is a number in Fibonacci coding.
func fibonacci(value int) string {
	summands := []int{1, 2}
	for summands[len(summands)-1] < value {
		summands = append(summands, summands[len(summands)-1]+summands[len(summands)-2])
	}
	code := ""
	for _, summand := range slices.Backward(summands) {
		switch {
		case summand <= value:
			value -= summand
			code = "1" + code
		case code != "":
			code = "0" + code
		}
	}
	return code + "1"
}

// What a string takes is bounded by its length, whatever it promises.
func TestParsingTakesMemoryOfTheOrderOfTheString(t *testing.T) {
	for name, text := range hostile() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			tcf, tcfErr := iab.ParseTCF(text)
			_, gppErr := iab.ParseGPP(text)
			runtime.ReadMemStats(&after)
			taken, most := after.TotalAlloc-before.TotalAlloc, uint64(64*len(text)+16<<10)
			if taken > most {
				t.Errorf("%d letters take %d bytes, want at most %d", len(text), taken, most)
			}
			for _, err := range []error{tcfErr, gppErr} {
				if err != nil && len(err.Error()) > 200 {
					t.Errorf("an error of %d bytes", len(err.Error()))
				}
			}
			tcf.Permits(2, 65535, iab.Consent, true)
		})
	}
}
