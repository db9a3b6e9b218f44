package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/weir-dev/weir/collector/connect"
)

// MinimumVersion is the first that is good: a long-term one with all that the tables and statements need.
const MinimumVersion = "24.8"

// Kind is what may be wrong with a server. It is an error, for [errors.Is].
type Kind string

// The kinds of [Problem].
const (
	// Unreachable: nothing answers, TLS fails, or a cluster's other servers are away.
	Unreachable Kind = "ClickHouse cannot be reached"
	// Denied: wrong user or password, or a right is missing.
	Denied Kind = "ClickHouse denies it"
	// TooOld: before [MinimumVersion].
	TooOld Kind = "ClickHouse is too old"
	// DiskFull: no room is left.
	DiskFull Kind = "ClickHouse's disk is full"
	// ReadOnly: tables take no writes, as when a cluster's Keeper is away.
	ReadOnly Kind = "ClickHouse takes no writes at the moment"
	// TooManyParts: blocks come faster than they are merged. It passes.
	TooManyParts Kind = "ClickHouse has too many parts"
	// MemoryLimit: a statement, a user or the server has no memory left.
	MemoryLimit Kind = "ClickHouse's memory limit is reached"
	// Timeout: a statement takes longer than it may.
	Timeout Kind = "ClickHouse takes too long"
	// Quota: the user has used up what its quota allows, or the server runs as many statements as it does at once.
	Quota Kind = "ClickHouse has reached a quota"
	// Missing: there is no such database, table or column.
	Missing Kind = "ClickHouse lacks a database, table or column"
	// Nonsense: what answers is no ClickHouse, or breaks off.
	Nonsense Kind = "the answer is not ClickHouse's"
	// Other: all else.
	Other Kind = "ClickHouse refuses a statement"
)

// Error implements error.
func (k Kind) Error() string { return string(k) }

// Problem is an error of a server or of the way to it. Its text is from a closed list but for names of rights, and may be
// shown to whoever brought the server: nothing of a URL, of a statement or of data is in it.
type Problem struct {
	Kind Kind
	// Message says more; "" for nothing.
	Message string
	// Code is ClickHouse's number of an error, 0 for what is none.
	Code int
}

// Error implements error.
func (p *Problem) Error() string {
	if p.Message == "" {
		return string(p.Kind)
	}
	return string(p.Kind) + ": " + p.Message
}

// Unwrap returns the kind.
func (p *Problem) Unwrap() error { return p.Kind }

// errAddress says that [Options.Control] has refused an address.
var errAddress = errors.New("the address is not one that may be connected to")

// meanings are the errors of ClickHouse that say something to an operator, by number.
var meanings = map[int]Problem{
	16:  {Kind: Missing, Message: "there is no such column"},
	47:  {Kind: Missing, Message: "there is no such column"},
	60:  {Kind: Missing, Message: "there is no such table"},
	81:  {Kind: Missing, Message: "there is no such database"},
	158: {Kind: MemoryLimit, Message: "the statement reads more rows than it may"},
	159: {Kind: Timeout}, 160: {Kind: Timeout, Message: "the server expects it to"},
	164: {Kind: Denied, Message: "the user may only read"},
	192: {Kind: Denied, Message: "there is no such user"},
	193: {Kind: Denied, Message: "the user or the password is wrong"},
	194: {Kind: Denied, Message: "the user needs a password"},
	195: {Kind: Denied, Message: "the user may not come from this address"},
	201: {Kind: Quota}, 202: {Kind: Quota, Message: "it runs as many statements as it does at once"},
	209: {Kind: Timeout, Message: "another server does not answer it in time"},
	210: {Kind: Unreachable, Message: "it does not reach another server"},
	225: {Kind: ReadOnly, Message: "it has no Keeper"},
	241: {Kind: MemoryLimit},
	242: {Kind: ReadOnly, Message: "the table is read-only, as while its Keeper is away"},
	243: {Kind: DiskFull},
	252: {Kind: TooManyParts},
	279: {Kind: Unreachable, Message: "it does not reach the other servers of its cluster"},
	285: {Kind: ReadOnly, Message: "too few replicas are there"},
	291: {Kind: Denied, Message: "the user may not use this database"},
	319: {Kind: Unreachable, Message: "it is not known whether the rows were written"},
	341: {Kind: Timeout, Message: "a mutation is not done in time"},
	394: {Kind: Timeout, Message: "the statement was ended by somebody"},
	396: {Kind: MemoryLimit, Message: "the answer is larger than it may be"},
	439: {Kind: Quota, Message: "it has no thread left"},
	497: {Kind: Denied},
	516: {Kind: Denied, Message: "the user or the password is wrong"},
	701: {Kind: Missing, Message: "there is no such cluster"},
	999: {Kind: ReadOnly, Message: "its Keeper does not answer"},
}

var (
	codePattern  = regexp.MustCompile(`Code: (\d{1,5})\. DB::Exception`)
	namePattern  = regexp.MustCompile(`\(([A-Z][A-Z0-9_]{2,60})\)`)
	grantPattern = regexp.MustCompile(`necessary to have the grant ([A-Z][A-Z ]{0,60}[A-Z])`)
	placePattern = regexp.MustCompile("ON (?:CLUSTER )?([A-Za-z0-9_*.`-]{1,140})")
)

// refusal is the error in an answer that is not 200.
func refusal(answer *http.Response, text []byte) error {
	code, _ := strconv.Atoi(answer.Header.Get("X-ClickHouse-Exception-Code"))
	if found := codePattern.FindSubmatch(text); found != nil {
		code, _ = strconv.Atoi(string(found[1]))
	}
	switch {
	case code > 0:
		return problem(code, string(text))
	case answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden:
		return &Problem{Kind: Denied, Message: "what stands before it does, perhaps"}
	case answer.StatusCode == http.StatusBadGateway || answer.StatusCode == http.StatusServiceUnavailable || answer.StatusCode == http.StatusGatewayTimeout:
		return &Problem{Kind: Unreachable, Message: fmt.Sprintf("what stands before it answers with %d", answer.StatusCode)}
	default:
		return &Problem{Kind: Nonsense, Message: fmt.Sprintf("it has the status %d", answer.StatusCode)}
	}
}

// exceptionIn is the error that stands in an answer which was good at its beginning; nil for none.
func exceptionIn(text []byte) error {
	found := codePattern.FindSubmatchIndex(text)
	if found == nil {
		return nil
	}
	code, _ := strconv.Atoi(string(text[found[2]:found[3]]))
	return problem(code, string(text[found[0]:]))
}

// problem is ClickHouse's error of a number. Its words are looked at for names that cannot be data.
func problem(code int, text string) *Problem {
	p, known := meanings[code]
	p.Code = code
	if !known {
		p.Kind, p.Message = Other, fmt.Sprintf("error %d", code)
		if names := namePattern.FindAllStringSubmatch(text, -1); len(names) > 0 {
			p.Message += " " + names[len(names)-1][1]
		}
	}
	if code == 497 {
		p.Message = "the user lacks a right"
		if grant := grantPattern.FindStringSubmatchIndex(text); grant != nil {
			p.Message = "the user lacks the right " + strings.TrimSuffix(text[grant[2]:grant[3]], " ON")
			if place := placePattern.FindStringSubmatch(text[grant[2]:]); place != nil {
				p.Message += " on " + strings.Trim(place[1], ".")
			}
		}
	}
	return &p
}

// explain says what is wrong with the way to a server. A context that has ended is the caller's affair.
func explain(ctx context.Context, err error) error {
	if known, ok := errors.AsType[*Problem](err); ok {
		return known
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, errAddress) {
		return &Problem{Kind: Unreachable, Message: errAddress.Error()}
	}
	if detail := connect.TLSDetail(err); detail != "" {
		return &Problem{Kind: Unreachable, Message: detail}
	}
	if strings.Contains(err.Error(), "malformed HTTP") {
		return &Problem{Kind: Nonsense, Message: "what answers does not speak HTTP"}
	}
	return &Problem{Kind: Unreachable, Message: connect.NetworkDetail(err)}
}

// checkVersion compares a version with the first that is good.
func checkVersion(version string) error {
	have, ok := monthOf(version)
	if !ok {
		return &Problem{Kind: Nonsense, Message: "its version is none"}
	}
	if least, _ := monthOf(MinimumVersion); have < least {
		return &Problem{Kind: TooOld, Message: "it must be version " + MinimumVersion + " or newer"}
	}
	return nil
}

// monthOf is a number that grows with versions such as 24.8.14.
func monthOf(version string) (int, bool) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return 0, false
	}
	year, err := strconv.Atoi(parts[0])
	month, err2 := strconv.Atoi(parts[1])
	return year*100 + month, err == nil && err2 == nil
}
