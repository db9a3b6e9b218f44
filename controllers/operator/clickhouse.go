package operator

import (
	"errors"
	"flag"
	"net/url"
	"os"
	"strings"

	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/connect"
)

// clickHouseFlags are the values of the flags of the operator's own ClickHouse that are read further.
type clickHouseFlags struct {
	urlFile string
	cidrs   []string
}

// addFlags adds them, and those that go straight to where they belong.
func (c *clickHouseFlags) addFlags(set *flag.FlagSet, o *options) {
	set.StringVar(&c.urlFile, "clickhouse-url-file", "", "`FILE` with the URL of the ClickHouse for Properties whose history names none; its user may administer")
	set.StringVar(&o.ClickHouseTLS.CA, "clickhouse-ca-file", "", "`FILE` with the authorities that ClickHouse's certificate may come from, in PEM; default: the system's")
	set.StringVar(&o.ClickHouseTLS.Certificate, "clickhouse-client-cert-file", "", "`FILE` with the certificate to show ClickHouse, in PEM; default: none")
	set.StringVar(&o.ClickHouseTLS.Key, "clickhouse-client-key-file", "", "`FILE` with that certificate's key, in PEM")
	set.Func("clickhouse-allow-cidr", "private range in which the operator connects to the ClickHouse that a Property brings, as `CIDR`; may be repeated; "+
		"default: none, only public addresses", flags.Repeated(&c.cidrs))
}

// read reads the files that they name.
func (c *clickHouseFlags) read(o *options, errs *flags.Errors) {
	o.ClickHouseAllowCIDRs = flags.ParseRanges("--clickhouse-allow-cidr", c.cidrs, errs)
	files := o.ClickHouseTLS
	switch {
	case c.urlFile == "" && files != (connect.TLSFiles{}):
		errs.Add("--clickhouse-ca-file, --clickhouse-client-cert-file: go with --clickhouse-url-file alone")
		return
	case (files.Certificate == "") != (files.Key == ""):
		errs.Add("--clickhouse-client-cert-file and --clickhouse-client-key-file: go together")
		return
	case c.urlFile == "":
		return
	}
	content, err := os.ReadFile(c.urlFile)
	if err != nil {
		errs.Add("--clickhouse-url-file: %v", err)
		return
	}
	o.ClickHouseURL = strings.TrimSpace(string(content))
	known, err := files.Read()
	if err == nil {
		err = clickhouse.CheckURL(o.ClickHouseURL, known)
	}
	if address, failed := url.Parse(o.ClickHouseURL); err == nil && (failed != nil || address.RawQuery != "" || address.User.Username() == "") {
		err = clickhouse.ErrURL
	}
	switch {
	case errors.Is(err, connect.ErrCA):
		errs.Add("--clickhouse-ca-file: %v", err)
	case errors.Is(err, connect.ErrClientCertificate):
		errs.Add("--clickhouse-client-cert-file: %v", err)
	case err != nil:
		errs.Add("--clickhouse-url-file: %s must hold a URL such as https://user:password@host:8443, with nothing behind a question mark", c.urlFile)
	}
}
