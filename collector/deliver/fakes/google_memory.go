package fakes

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// Processing is what becomes of a request that Google has queued. The zero Processing has it succeed.
type Processing struct {
	// Looks is how often it is still under way when it is asked for.
	Looks int
	// Unknown forgets the request; Page answers with this text and status 200 in place of a status.
	Unknown bool
	Page    string
	// Ticket is the request's id; "" for one of its own.
	Ticket string
}

// googleMemory is what a fake of Google remembers: tokens, requests and what becomes of them.
type googleMemory struct {
	mu     sync.Mutex
	tokens map[string]googleToken
	// requests are the transactions of those that were queued, planned how the next ones are processed, and reasons why
	// transactions fail then.
	requests map[string]*googleQueued
	planned  []Processing
	reasons  map[string]string
	// made counts the requests.
	made int
}

type googleToken struct {
	accounts []string
	ends     time.Time
}

type googleQueued struct {
	Processing
	transactions []string
}

func newGoogleMemory() *googleMemory {
	return &googleMemory{tokens: map[string]googleToken{}, requests: map[string]*googleQueued{}, reasons: map[string]string{}}
}

// Process says what becomes of the next requests that a fake of Google queues, in their order.
func (s *Server) Process(next ...Processing) {
	s.google.mu.Lock()
	defer s.google.mu.Unlock()
	s.google.planned = append(s.google.planned, next...)
}

// RefuseLater has events with these ids refused when Google processes them, for one of its reasons.
func (s *Server) RefuseLater(reason string, ids ...string) {
	s.google.mu.Lock()
	defer s.google.mu.Unlock()
	for _, id := range ids {
		s.google.reasons[id] = reason
	}
}

// RevokeTokens has all tokens refused that Google has granted so far.
func (s *Server) RevokeTokens() {
	s.google.mu.Lock()
	defer s.google.mu.Unlock()
	clear(s.google.tokens)
}

// Token is one that a fake of Google has granted to all of its accounts, for who asks for none.
func (s *Server) Token() string {
	names := []string{}
	for _, account := range s.accounts {
		names = append(names, account.Platform.Name)
	}
	return s.google.grant(names, s.now())
}

// grant makes a token for accounts.
func (m *googleMemory) grant(names []string, now time.Time) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	token := "token-for-tests-" + rand.Text()
	m.tokens[token] = googleToken{names, now.Add(time.Hour)}
	return token
}

// accounts returns the names of the accounts that a token is for, nil for none.
func (m *googleMemory) accounts(token string, now time.Time) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	granted, known := m.tokens[token]
	if !known || now.After(granted.ends) {
		return nil
	}
	return granted.accounts
}

// queue takes a request with these transactions, and returns its id.
func (m *googleMemory) queue(transactions []string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made++
	id, queued := fmt.Sprintf("request-%d", m.made), &googleQueued{transactions: transactions}
	if len(m.planned) > 0 {
		queued.Processing, m.planned = m.planned[0], m.planned[1:]
	}
	if queued.Ticket != "" {
		id = queued.Ticket
	}
	if !queued.Unknown {
		m.requests[id] = queued
	}
	return id
}

// status says what has become of a request.
func (m *googleMemory) status(id string) answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	queued, known := m.requests[id]
	if !known {
		return googleError(http.StatusBadRequest, googleInfo("INVALID_REQUEST_ID"))
	}
	if queued.Page != "" {
		return answer{status: http.StatusOK, contentType: "application/json", body: queued.Page}
	}
	status, counts := "SUCCESS", map[string]int{}
	for _, transaction := range queued.transactions {
		if reason := m.reasons[transaction]; reason != "" {
			counts[reason]++
		}
	}
	failed, listed := 0, []map[string]any{}
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		failed += counts[reason]
		listed = append(listed, map[string]any{"recordCount": fmt.Sprint(counts[reason]), "reason": reason})
	}
	switch {
	case queued.Looks > 0:
		queued.Looks--
		status, listed = "PROCESSING", nil
	case failed == len(queued.transactions):
		status = "FAILED"
	case failed > 0:
		status = "PARTIAL_SUCCESS"
	}
	return answerJSON(http.StatusOK, map[string]any{"requestStatusPerDestination": []any{map[string]any{
		"requestStatus": status, "errorInfo": map[string]any{"errorCounts": listed},
		"eventsIngestionStatus": map[string]any{"recordCount": fmt.Sprint(len(queued.transactions))},
	}}})
}

// googleClaims are those of a grant's assertion.
type googleClaims struct {
	Issuer   string `json:"iss"`
	Scope    string `json:"scope"`
	Audience string `json:"aud"`
	Expires  int64  `json:"exp"`
	Issued   int64  `json:"iat"`
}

// grantGoogle grants a token for an assertion that a service account has signed.
func (q *request) grantGoogle() answer {
	refuse := func(reason string) answer {
		return answerJSON(http.StatusBadRequest, map[string]any{"error": "invalid_grant", "error_description": "Invalid JWT"}).complain("%s", reason)
	}
	form, err := url.ParseQuery(string(q.body))
	if err != nil || !strings.HasPrefix(q.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return refuse("a grant must be a form")
	}
	parts := strings.Split(form.Get("assertion"), ".")
	if form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || len(parts) != 3 {
		return refuse("the grant must be by an assertion")
	}
	var decoded [3][]byte
	for i, part := range parts {
		if decoded[i], err = base64.RawURLEncoding.DecodeString(part); err != nil {
			return refuse("the assertion must be in base64")
		}
	}
	var header struct {
		Algorithm string `json:"alg"`
	}
	var claims googleClaims
	if json.Unmarshal(decoded[0], &header) != nil || header.Algorithm != "RS256" || json.Unmarshal(decoded[1], &claims) != nil {
		return refuse("the assertion must be signed by RS256")
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	var names []string
	for _, account := range q.accounts {
		email, key := googleServiceAccount(account.Credentials["serviceAccountKey"])
		if key != nil && email == claims.Issuer && rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], decoded[2]) == nil {
			names = append(names, account.Platform.Name)
		}
	}
	now := q.now.Unix()
	switch {
	case names == nil:
		return refuse("the signature is no service account's")
	case claims.Audience != "http://"+q.Host+"/token":
		return refuse("the audience must be the address of the grant")
	case claims.Scope != "https://www.googleapis.com/auth/datamanager":
		return refuse("the scope must be that of the Data Manager API")
	case claims.Expires <= now || claims.Issued > now+300 || claims.Expires-claims.Issued > 3600:
		return refuse("the assertion must be of now, for an hour at most")
	}
	token := q.google.grant(names, q.now)
	return answerJSON(http.StatusOK, map[string]any{"access_token": token, "expires_in": 3599, "token_type": "Bearer"})
}

// googleServiceAccount reads a service account's key as far as a grant is verified by it.
func googleServiceAccount(text string) (email string, key *rsa.PublicKey) {
	var account struct {
		Email string `json:"client_email"`
		Key   string `json:"private_key"`
	}
	if json.Unmarshal([]byte(text), &account) != nil {
		return "", nil
	}
	block, _ := pem.Decode([]byte(account.Key))
	if block == nil {
		return "", nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	private, ok := parsed.(*rsa.PrivateKey)
	if err != nil || !ok {
		return "", nil
	}
	return account.Email, &private.PublicKey
}
