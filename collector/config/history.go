package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/connect"
)

// The files of the history, which are there where events are kept in ClickHouse.
const (
	HistoryURLFile = "history/url"
	// These are named as in a Secret of type kubernetes.io/tls.
	HistoryCAFile          = "history/ca.crt"
	HistoryCertificateFile = "history/tls.crt"
	HistoryKeyFile         = "history/tls.key"
	HistorySettingsFile    = "history/settings.json"
)

// History is how the ClickHouse is reached that keeps a Property's events, and how it keeps them.
type History struct {
	// URL is http(s)://USER:PASSWORD@HOST:PORT/DATABASE.
	URL string
	TLS connect.TLS
	HistorySettings
}

// HistorySettings is what is no secret of a history.
type HistorySettings struct {
	// Cluster is the cluster of ClickHouse's configuration over which the tables are spread; "" for a single server.
	Cluster string `json:"cluster,omitzero"`
	// RetentionDays is for how many days events are kept there; 0 for as long as in Redis.
	RetentionDays int `json:"retentionDays,omitzero"`
}

// Files renders it, by the files' paths. All are there, whether or not they have a content: a volume may then name each.
func (h History) Files() map[string][]byte {
	settings, err := json.Marshal(h.HistorySettings)
	if err != nil {
		settings = []byte("{}") // cannot be: it is a text and a number
	}
	return map[string][]byte{
		HistoryURLFile: []byte(h.URL), HistoryCAFile: []byte(h.TLS.CA), HistoryCertificateFile: []byte(h.TLS.Certificate), HistoryKeyFile: []byte(h.TLS.Key),
		HistorySettingsFile: settings,
	}
}

// LoadHistory reads how the history is reached below dir, and whether there is one. Space around the URL is not part of it. Errors
// repeat nothing of what they are about, for the URL holds a password.
func LoadHistory(dir string) (history History, found bool, err error) {
	text, err := readFile(dir, HistoryURLFile)
	if errors.Is(err, fs.ErrNotExist) {
		return History{}, false, nil
	}
	if err != nil {
		return History{}, false, err
	}
	loaded := History{URL: strings.TrimSpace(string(text))}
	if err := CheckHistoryURL(loaded.URL); err != nil {
		return History{}, false, fmt.Errorf("%s: %w", HistoryURLFile, err)
	}
	if err := readJSON(dir, HistorySettingsFile, &loaded.HistorySettings); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return History{}, false, err
	}
	if loaded.RetentionDays < 0 {
		return History{}, false, fmt.Errorf("%s: retentionDays: must be at least 1, or absent", HistorySettingsFile)
	}
	for file, into := range map[string]*string{HistoryCAFile: &loaded.TLS.CA, HistoryCertificateFile: &loaded.TLS.Certificate, HistoryKeyFile: &loaded.TLS.Key} {
		content, err := readFile(dir, file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return History{}, false, err
		}
		*into = string(content)
	}
	switch err := clickhouse.CheckURL(loaded.URL, loaded.TLS); {
	case errors.Is(err, connect.ErrCA):
		return History{}, false, fmt.Errorf("%s: %w", HistoryCAFile, err)
	case err != nil:
		return History{}, false, fmt.Errorf("%s, %s: %w", HistoryCertificateFile, HistoryKeyFile, err)
	}
	return loaded, true, nil
}

// errHistoryURL repeats nothing of the URL, which holds a password.
var errHistoryURL = errors.New("must be a URL such as https://user:password@host:8443/database")

// CheckHistoryURL fails unless the text is the URL of a database, with a user.
func CheckHistoryURL(text string) error {
	address, err := url.Parse(text)
	if err != nil || address.Hostname() == "" || address.Scheme != "http" && address.Scheme != "https" {
		return errHistoryURL
	}
	database := strings.TrimPrefix(address.Path, "/")
	if address.User.Username() == "" || database == "" || strings.Contains(database, "/") || address.RawQuery != "" || address.Fragment != "" {
		return errHistoryURL
	}
	return nil
}
