package browser

import (
	"bytes"
	"fmt"
	"image/png"
	"os"

	"github.com/chromedp/chromedp"
)

// maxPicture bounds a picture of the guides, in bytes.
const maxPicture = 150 << 10

// Keep takes a picture of what can be seen, of so many pixels, and judges it. With update it becomes the file; else there is one of the
// same size already.
func (p *Tab) Keep(file string, width, height int64, update bool) {
	p.t.Helper()
	p.Do(chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`))
	taken := p.Picture()
	if update {
		if err := os.WriteFile(file, taken, 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		p.t.Fatal(err)
	}
	for what, picture := range map[string][]byte{"taken now": taken, "of the guide": kept} {
		drawn, err := png.Decode(bytes.NewReader(picture))
		if err != nil {
			p.t.Fatalf("the picture %s: %v", what, err)
		}
		got, want := fmt.Sprint(drawn.Bounds().Size()), fmt.Sprintf("(%d,%d)", width, height)
		if got != want || what == "of the guide" && len(picture) > maxPicture {
			p.t.Errorf("the picture %s has %s pixels in %d bytes, want %s in at most %d", what, got, len(picture), want, maxPicture)
		}
	}
}
