package config

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/weir-dev/weir/collector/event/erasure"
)

// MaxLedgerParts is how many files a ledger of erasures may have. Whoever keeps it has all of it in memory when it is added to,
// some 110 MiB.
const MaxLedgerParts = 4

// LoadLedger reads the ledger of erasures below dir, all its parts; nil where there is none.
func LoadLedger(dir string) (*erasure.Ledger, error) {
	var whole *erasure.Ledger
	for part := range MaxLedgerParts {
		file := LedgerFile
		if part > 0 {
			file += "-" + strconv.Itoa(part)
		}
		text, err := readFile(dir, file)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		ledger, err := erasure.Decode(text)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", file, err)
		case whole == nil:
			whole = ledger
		case whole.Salt != ledger.Salt:
			return nil, fmt.Errorf("%s: must have the salt of %s", file, LedgerFile)
		default:
			for _, entry := range ledger.Entries() {
				whole.Add(entry)
			}
		}
	}
	return whole, nil
}
