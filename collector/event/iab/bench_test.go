package iab_test

import (
	"math/rand/v2"
	"testing"

	"github.com/weir-dev/weir/collector/event/iab"
)

// usualString is what a shop's page in Europe sends: 800 vendors of which two thirds have consent, some restrictions, the vendors
// that were disclosed and the publisher's purposes.
func usualString() string {
	random := rand.New(rand.NewPCG(1, 2))
	const highest = 1250
	var consents, interests, disclosed []int
	for id := 1; id <= highest; id++ {
		if random.IntN(highest) >= 800 {
			continue
		}
		disclosed = append(disclosed, id)
		if random.IntN(3) > 0 {
			consents = append(consents, id)
		}
		if random.IntN(2) > 0 {
			interests = append(interests, id)
		}
	}
	return core{
		consents: []int{1, 2, 3, 4, 7, 9, 10}, interests: []int{2, 7, 9, 10}, vendors: bitfield(highest, consents...), liVendors: bitfield(highest, interests...),
		restrictions: []string{
			restriction(2, 1, [2]int{10, 12}, [2]int{100, 700}), restriction(7, 1, [2]int{10, 12}, [2]int{755, 755}), restriction(9, 0, [2]int{42, 42}),
		},
	}.text() + "." + text("001"+bitfield(highest, disclosed...)) + "." + text("011"+flags(24, 1)+flags(24)+number(0, 6))
}

func BenchmarkParseTCF(b *testing.B) {
	usual := usualString()
	b.Run("800 vendors", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(usual)))
		for b.Loop() {
			if _, err := iab.ParseTCF(usual); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, text := range hostile() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				_, _ = iab.ParseTCF(text)
				_, _ = iab.ParseGPP(text)
			}
		})
	}
}

func BenchmarkPermits(b *testing.B) {
	for name, text := range map[string]string{"800 vendors": usualString(), "hostile": hostile()["restrictions of all vendors"]} {
		b.Run(name, func(b *testing.B) {
			read, err := iab.ParseTCF(text)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				read.Permits(2, 755, iab.LegitimateInterest, true)
			}
		})
	}
}

func BenchmarkParseGPP(b *testing.B) {
	text := "DBABLA~CAAAVVVVVVRA.YA"
	b.ReportAllocs()
	for b.Loop() {
		if _, err := iab.ParseGPP(text); err != nil {
			b.Fatal(err)
		}
	}
}
