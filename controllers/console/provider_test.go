package console

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// The console's client at the provider of the tests.
const (
	clientID     = "weir"
	clientSecret = "s3cret/+ with blanks"
)

// testProvider is an OpenID Connect provider that lets in whoever the test says, and holds its clients to everything that it may: the
// redirect URI, PKCE, the client's secret, and codes that are good once. A test can have it misbehave.
type testProvider struct {
	*httptest.Server
	redirect string
	now      func() time.Time

	mu    sync.Mutex
	codes map[string]authorization
	// claims are those of whoever signs in next.
	claims map[string]any
	key    *ecdsa.PrivateKey
	kid    string
	// published are the keys that the provider shows.
	published []jose.JSONWebKey
	faults
}

// faults are ways to misbehave; the zero value is none.
type faults struct {
	// before answers in the provider's place where it returns true.
	before func(w http.ResponseWriter, r *http.Request) bool
	// client says whether the client has shown itself at the token endpoint; nil for by client_secret_basic.
	client func(*http.Request) bool
	// describe changes the description, answer where a browser is sent back to, sign the ID token.
	describe func(map[string]any)
	answer   func(url.Values)
	sign     func(claims map[string]any) string
}

// authorization is a sign-in that has been let in.
type authorization struct {
	challenge, nonce string
	claims           map[string]any
}

func newTestProvider(t testing.TB) *testProvider {
	t.Helper()
	p := &testProvider{now: time.Now, codes: map[string]authorization{}, claims: map[string]any{"sub": "ada"}}
	p.rotate(t)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.description)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		answerJSON(w, http.StatusOK, jose.JSONWebKeySet{Keys: p.published})
	})
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		before := p.before
		p.mu.Unlock()
		if before == nil || !before(w, r) {
			mux.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// rotate makes a new key, and gives the one before up.
func (p *testProvider) rotate(t testing.TB) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key, p.kid = key, rand.Text()
	p.published = []jose.JSONWebKey{{Key: key.Public(), KeyID: p.kid, Algorithm: "ES256", Use: "sig"}}
}

// authorities is the provider's certificate in PEM.
func (p *testProvider) authorities() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw})
}

// misbehave replaces the provider's faults.
func (p *testProvider) misbehave(f faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = f
}

// letIn says who signs in next.
func (p *testProvider) letIn(claims map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims = claims
}

func answerJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (p *testProvider) description(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"end_session_endpoint": p.URL + "/end?from=weir", "id_token_signing_alg_values_supported": []string{"ES256"},
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic"}, "authorization_response_iss_parameter_supported": true,
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
	}
	if p.describe != nil {
		p.describe(text)
	}
	answerJSON(w, http.StatusOK, text)
}

// authorize lets in whoever the test says.
func (p *testProvider) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case query.Get("client_id") != clientID || query.Get("redirect_uri") != p.redirect:
		http.Error(w, "client or redirect_uri", http.StatusBadRequest)
		return
	case query.Get("response_type") != "code" || !strings.Contains(" "+query.Get("scope")+" ", " openid "),
		query.Get("code_challenge_method") != "S256" || len(query.Get("code_challenge")) != 43, len(query.Get("state")) < 22, len(query.Get("nonce")) < 22:
		http.Error(w, "parameters", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.codes[code] = authorization{query.Get("code_challenge"), query.Get("nonce"), maps.Clone(p.claims)}
	back := url.Values{"code": {code}, "state": {query.Get("state")}, "iss": {p.URL}}
	if p.answer != nil {
		p.answer(back)
	}
	w.Header().Set("Location", p.redirect+"?"+back.Encode())
	w.WriteHeader(http.StatusFound)
}

// token answers a code with an ID token, once.
func (p *testProvider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := basic
	if p.client != nil {
		known = p.client
	}
	if !known(r) {
		answerJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	code := r.PostFormValue("code")
	found, given := p.codes[code]
	delete(p.codes, code)
	challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !given || r.PostFormValue("grant_type") != "authorization_code" || r.PostFormValue("redirect_uri") != p.redirect ||
		base64.RawURLEncoding.EncodeToString(challenge[:]) != found.challenge {
		answerJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	now := p.now()
	claims := map[string]any{"iss": p.URL, "aud": clientID, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(), "nonce": found.nonce}
	for name, value := range found.claims {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	sign := p.signed
	if p.sign != nil {
		sign = p.sign
	}
	answerJSON(w, http.StatusOK, map[string]any{"access_token": "a", "token_type": "Bearer", "expires_in": 300, "id_token": sign(claims)})
}

// basic says whether a client has shown its secret by client_secret_basic.
func basic(r *http.Request) bool {
	id, secret, _ := r.BasicAuth()
	return id == url.QueryEscape(clientID) && secret == url.QueryEscape(clientSecret)
}

// signed signs claims with the provider's key.
func (p *testProvider) signed(claims map[string]any) string {
	return signedWith(jose.ES256, jose.JSONWebKey{Key: p.key, KeyID: p.kid}, claims)
}

// signedWith is a JSON Web Token.
func signedWith(algorithm jose.SignatureAlgorithm, key any, claims map[string]any) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, nil)
	if err != nil {
		panic(err)
	}
	text, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	signature, err := signer.Sign(text)
	if err != nil {
		panic(err)
	}
	compact, err := signature.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return compact
}

// unsigned is a JSON Web Token of the algorithm none.
func unsigned(claims map[string]any) string {
	text, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode(text) + "."
}
