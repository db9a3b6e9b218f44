package auth_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/auth"
)

var signedAt = time.Date(2026, time.November, 28, 12, 0, 0, 0, time.UTC)

// segment is a part of a JSON Web Token.
func segment(t testing.TB, content any) string {
	t.Helper()
	text, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// forged puts a token together by RFC 7515, so that what the library would never write can be shown, too.
func forged(t testing.TB, header, claims map[string]any, sign func([]byte) []byte) string {
	t.Helper()
	text := segment(t, header) + "." + segment(t, claims)
	return text + "." + base64.RawURLEncoding.EncodeToString(sign([]byte(text)))
}

// changed returns the map with one member changed, or without it where value is nil.
func changed(from map[string]any, name string, value any) map[string]any {
	next := maps.Clone(from)
	if next[name] = value; value == nil {
		delete(next, name)
	}
	return next
}

func TestASignedTokenIsTakenByItsPropertyForAMinuteAtMost(t *testing.T) {
	key, other := auth.NewSigningKey(signedAt), auth.NewSigningKey(signedAt)
	private := ed25519.NewKeyFromSeed(key.Seed)
	sign := func(text []byte) []byte { return ed25519.Sign(private, text) }
	header := map[string]any{"alg": "EdDSA", "typ": "JWT", "kid": key.ID}
	claims := map[string]any{
		"iss": "weir-console", "sub": "oidc:alice", "aud": "uid-of-shop", "scope": "write", "iat": signedAt.Unix(), "exp": signedAt.Add(time.Minute).Unix(),
	}
	made := func(header, claims map[string]any) string { return forged(t, header, claims, sign) }
	ours, err := key.Sign("oidc:alice", "uid-of-shop", auth.ScopeWrite, signedAt)
	if err != nil {
		t.Fatal(err)
	}
	hs256 := forged(t, changed(header, "alg", "HS256"), claims, func(text []byte) []byte {
		mac := hmac.New(sha256.New, key.Public())
		mac.Write(text)
		return mac.Sum(nil)
	})
	none := strings.Join(append(strings.Split(made(changed(header, "alg", "none"), claims), ".")[:2], ""), ".")
	for name, c := range map[string]struct {
		token string
		now   time.Time
		want  bool
	}{
		"as the console makes it":                  {ours, signedAt, true},
		"a moment before it ends":                  {ours, signedAt.Add(auth.SignedFor - 1), true},
		"not when it ends":                         {ours, signedAt.Add(auth.SignedFor), false},
		"where the console's clock is ahead a bit": {ours, signedAt.Add(-9 * time.Second), true},
		"not where it is far ahead":                {ours, signedAt.Add(-11 * time.Second), false},
		"one that lasts a minute":                  {made(header, claims), signedAt, true},
		"not one that lasts longer":                {made(header, changed(claims, "exp", signedAt.Add(61*time.Second).Unix())), signedAt, false},
		"not one without an end":                   {made(header, changed(claims, "exp", nil)), signedAt, false},
		"not one without a beginning":              {made(header, changed(claims, "iat", nil)), signedAt, false},
		"not one that is not good yet":             {made(header, changed(claims, "nbf", signedAt.Add(30*time.Second).Unix())), signedAt, false},
		"not one that ends before it begins":       {made(header, changed(claims, "iat", signedAt.Add(2*time.Minute).Unix())), signedAt, false},
		"not one of another property":              {made(header, changed(claims, "aud", "uid-of-blog")), signedAt, false},
		"not one of two properties":                {made(header, changed(claims, "aud", []string{"uid-of-shop", "uid-of-blog"})), signedAt, false},
		"not one of no property":                   {made(header, changed(claims, "aud", nil)), signedAt, false},
		"not one of another issuer":                {made(header, changed(claims, "iss", "https://idp.example.com")), signedAt, false},
		"not one of nobody":                        {made(header, changed(claims, "sub", nil)), signedAt, false},
		"not one with another scope":               {made(header, changed(claims, "scope", "root")), signedAt, false},
		"not one without a scope":                  {made(header, changed(claims, "scope", nil)), signedAt, false},
		"not one with another key's id":            {made(changed(header, "kid", other.ID), claims), signedAt, false},
		"not one without a key's id":               {made(changed(header, "kid", nil), claims), signedAt, false},
		"not one signed by another key": {forged(t, header, claims, func(text []byte) []byte {
			return ed25519.Sign(ed25519.NewKeyFromSeed(other.Seed), text)
		}), signedAt, false},
		"not one that is not signed":              {none, signedAt, false},
		"not one signed with the public half":     {hs256, signedAt, false},
		"not one whose header says another thing": {made(changed(header, "alg", "ES256"), claims), signedAt, false},
		"not one with a changed claim":            {strings.Replace(ours, strings.Split(ours, ".")[1], segment(t, changed(claims, "scope", "admin")), 1), signedAt, false},
		"not one with a critical extension":       {made(changed(header, "crit", []string{"unknown"}), claims), signedAt, false},
		"not one that brings its own key":         {made(changed(header, "jwk", map[string]string{"kty": "OKP"}), claims), signedAt, false},
		"not one that is cut short":               {ours[:len(ours)-2], signedAt, false},
		"not one that is very long":               {made(header, changed(claims, "sub", strings.Repeat("a", 9<<10))), signedAt, false},
		"not an access token":                     {auth.NewAccessToken(), signedAt, false},
		"not nothing":                             {"", signedAt, false},
		"not two dots":                            {"..", signedAt, false},
	} {
		t.Run(name, func(t *testing.T) {
			verifier := auth.Verifier{Audience: "uid-of-shop", Keys: []auth.PublicKey{auth.NewSigningKey(signedAt).Public(), key.Public()}}
			got, taken := verifier.Verify(c.token, c.now)
			if taken != c.want {
				t.Fatalf("taken: %v, want %v", taken, c.want)
			}
			if taken && (got.Name != "oidc:alice" || got.Scope != auth.ScopeWrite) {
				t.Errorf("got %q, scope %s", got.Name, got.Scope)
			}
		})
	}
	for name, verifier := range map[string]auth.Verifier{
		"where there is no console":           {},
		"where the key is trusted no more":    {Audience: "uid-of-shop"},
		"where nobody knows the property":     {Keys: []auth.PublicKey{key.Public()}},
		"where another key is trusted":        {Audience: "uid-of-shop", Keys: []auth.PublicKey{other.Public()}},
		"at a property that came after it":    {Audience: "uid-of-shop-2", Keys: []auth.PublicKey{key.Public()}},
		"where the key in the file is broken": {Audience: "uid-of-shop", Keys: []auth.PublicKey{key.Public()[:31]}},
	} {
		if _, taken := verifier.Verify(ours, signedAt); taken {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestSigningKeysAreReadAsTheyAreWritten(t *testing.T) {
	want := []auth.SigningKey{auth.NewSigningKey(signedAt), auth.NewSigningKey(signedAt.Add(-time.Hour))}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := auth.ParseSigningKeys(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	seed := base64.StdEncoding.EncodeToString(want[0].Seed)
	for name, broken := range map[string]string{
		"no JSON": "x", "nothing": "", "no keys": "[]", "null": "null", "a key without a seed": `[{"kid":"a","created":"2026-11-28T12:00:00Z"}]`,
		"another key's id": `[{"kid":"` + want[1].ID + `","seed":"` + seed + `","created":"2026-11-28T12:00:00Z"}]`,
		"a short seed":     `[{"kid":"` + want[0].ID + `","seed":"` + seed[:8] + `","created":"2026-11-28T12:00:00Z"}]`,
	} {
		if _, err := auth.ParseSigningKeys([]byte(broken)); err == nil {
			t.Errorf("%s: read without an error", name)
		} else if strings.Contains(err.Error(), seed[:8]) {
			t.Errorf("%s: the error repeats the key: %v", name, err)
		}
	}
}

func TestPublicKeysAreFortyThreeDigits(t *testing.T) {
	key := auth.NewSigningKey(signedAt).Public()
	text, err := json.Marshal(key)
	if err != nil || len(text) != 45 {
		t.Fatalf("got %s, %v, want 43 digits", text, err)
	}
	var got auth.PublicKey
	if err := json.Unmarshal(text, &got); err != nil || got.ID() != key.ID() {
		t.Errorf("got %s, %v", got, err)
	}
	for _, broken := range []string{`""`, `"AAAA"`, `"` + strings.Repeat("!", 43) + `"`} {
		if err := json.Unmarshal([]byte(broken), &got); err == nil {
			t.Errorf("%s is read as a key", broken)
		}
	}
}

func TestACredentialWithAPrefixIsOnlyWhatWeirMakes(t *testing.T) {
	made, key := auth.NewAccessToken(), auth.NewAPIKey()
	guessable := "wt_password1"
	credentials := []auth.Credential{
		{Name: "accesstoken/made", Hash: auth.HashOf(made), Prefix: auth.AccessTokenPrefix},
		{Name: "accesstoken/guessable", Hash: auth.HashOf(guessable), Prefix: auth.AccessTokenPrefix},
		{Name: "accesstoken/key", Hash: auth.HashOf(key), Prefix: auth.AccessTokenPrefix},
		{Name: "brought", Hash: auth.HashOf(guessable)},
	}
	for name, c := range map[string]struct{ secret, want string }{
		"what Weir makes":                        {made, "accesstoken/made"},
		"what somebody made up is another's own": {guessable, "brought"},
		"what is for another use is nothing":     {key, ""},
	} {
		got, found := auth.Match(credentials, c.secret, signedAt)
		if got.Name != c.want || found != (c.want != "") {
			t.Errorf("%s: got %q, %v, want %q", name, got.Name, found, c.want)
		}
	}
}

// FuzzVerify holds that nothing is taken but what was signed.
func FuzzVerify(f *testing.F) {
	key, stranger := auth.NewSigningKey(signedAt), auth.NewSigningKey(signedAt)
	token, err := stranger.Sign("oidc:alice", "uid", auth.ScopeAdmin, signedAt)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(token)
	f.Add("..")
	verifier := auth.Verifier{Audience: "uid", Keys: []auth.PublicKey{key.Public()}}
	f.Fuzz(func(t *testing.T, token string) {
		if got, taken := verifier.Verify(token, signedAt); taken {
			t.Errorf("%q is taken as %+v", token, got)
		}
	})
}
