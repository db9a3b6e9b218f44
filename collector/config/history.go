package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"

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
)

// ClickHouse is how the server is reached that keeps a Property's events.
type ClickHouse struct {
	// URL is http(s)://USER:PASSWORD@HOST:PORT/DATABASE.
	URL string
	TLS connect.TLS
	// Cluster is [History.Cluster]; it is in none of the files.
	Cluster string
}

// History says how the events of a Property are kept in ClickHouse.
type History struct {
	// Cluster is the cluster of ClickHouse's configuration over which the tables are spread; "" for a single server.
	Cluster string `json:"cluster,omitempty"`
	// RetentionDays is for how many days events are kept there, at least as many as in Redis.
	RetentionDays int `json:"retentionDays"`
}

// Files renders it, by the files' paths. All are there, whether or not they have a content: a volume may then name each.
func (c ClickHouse) Files() map[string][]byte {
	return map[string][]byte{
		HistoryURLFile: []byte(c.URL), HistoryCAFile: []byte(c.TLS.CA), HistoryCertificateFile: []byte(c.TLS.Certificate), HistoryKeyFile: []byte(c.TLS.Key),
	}
}

// LoadClickHouse reads how the history is reached below dir, and whether there is one. Space around the URL is not part of it. Errors
// repeat nothing of what they are about, for the URL holds a password.
func LoadClickHouse(dir string) (loaded ClickHouse, found bool, err error) {
	text, err := readFile(dir, HistoryURLFile)
	if errors.Is(err, fs.ErrNotExist) {
		return ClickHouse{}, false, nil
	}
	if err != nil {
		return ClickHouse{}, false, err
	}
	loaded.URL = strings.TrimSpace(string(text))
	if err := CheckHistoryURL(loaded.URL); err != nil {
		return ClickHouse{}, false, fmt.Errorf("%s: %w", HistoryURLFile, err)
	}
	for file, into := range map[string]*string{HistoryCAFile: &loaded.TLS.CA, HistoryCertificateFile: &loaded.TLS.Certificate, HistoryKeyFile: &loaded.TLS.Key} {
		content, err := readFile(dir, file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return ClickHouse{}, false, err
		}
		*into = string(content)
	}
	switch err := clickhouse.CheckURL(loaded.URL, loaded.TLS); {
	case errors.Is(err, connect.ErrCA):
		return ClickHouse{}, false, fmt.Errorf("%s: %w", HistoryCAFile, err)
	case err != nil:
		return ClickHouse{}, false, fmt.Errorf("%s, %s: %w", HistoryCertificateFile, HistoryKeyFile, err)
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
