package config

import (
	"encoding"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/stream"
)

// Reading is strict: a member that is not known is an error that names it. When the operator is newer than a
// pod, for the minutes of an upgrade, this means that the pod keeps what it last loaded and says so, and that
// what the Property newly asks for holds once the new pods serve; ignoring the member instead could deliver
// what the owner has just forbidden. So that only Properties which use something new are touched by that, a
// member added to a file is written with omitzero and its zero value means what held before.

// maxFileBytes bounds a configuration file; a ConfigMap or Secret cannot hold more.
const maxFileBytes = 1 << 20

// Load reads and validates the property file below dir.
func Load(dir string) (Property, error) {
	var p Property
	if err := readJSON(dir, PropertyFile, &p); err != nil {
		return Property{}, err
	}
	if err := p.Validate(); err != nil {
		return Property{}, fmt.Errorf("%s: %w", PropertyFile, err)
	}
	return p, nil
}

// LoadAPIKeys reads the API keys' hashes below dir, and what bounds the publishable ones. API keys have no scope.
func LoadAPIKeys(dir string) ([]auth.Credential, error) {
	keys, err := loadCredentials(dir, APIKeysFile, func(key *auth.Credential) error {
		if key.Scope != "" {
			return errors.New("scope: must be absent: an API key has no scope")
		}
		return checkPublishable(key.Publishable)
	})
	if err != nil {
		return nil, err
	}
	if err := CheckAPIKeys(keys); err != nil {
		return nil, fmt.Errorf("%s: %w", APIKeysFile, err)
	}
	return keys, nil
}

// CheckAPIKeys fails where a publishable key is a secret one as well: everybody could read that in a web page. The error
// names the keys by their places.
func CheckAPIKeys(keys []auth.Credential) error {
	for i, key := range keys {
		for j, other := range keys {
			if key.Publishable != nil && other.Publishable == nil && key.Hash == other.Hash {
				return fmt.Errorf("[%d]: must have another value than [%d]: one is publishable, the other is secret", i, j)
			}
		}
	}
	return nil
}

// checkPublishable judges what bounds a publishable key; nil is none.
func checkPublishable(p *auth.Publishable) error {
	switch {
	case p == nil:
		return nil
	case len(p.AllowedOrigins) == 0:
		return errors.New("publishable.allowedOrigins: must not be empty")
	case p.EventsPerSecond < 1:
		return errors.New("publishable.eventsPerSecond: must be at least 1")
	case p.EventsPerSecondPerAddress < 1:
		return errors.New("publishable.eventsPerSecondPerAddress: must be at least 1")
	}
	for i, origin := range p.AllowedOrigins {
		if !auth.ValidOrigin(origin) {
			return fmt.Errorf("publishable.allowedOrigins[%d]: %s", i, auth.OriginRule)
		}
	}
	return nil
}

// LoadAccessTokens reads the access tokens' hashes and scopes below dir.
func LoadAccessTokens(dir string) ([]auth.Credential, error) {
	return loadCredentials(dir, AccessTokensFile, func(token *auth.Credential) error {
		if !token.Scope.Valid() {
			return fmt.Errorf("scope: must be %s, %s or %s", auth.ScopeRead, auth.ScopeWrite, auth.ScopeAdmin)
		}
		if token.Publishable != nil {
			return errors.New("publishable: must be absent: only API keys are publishable")
		}
		return nil
	})
}

func loadCredentials(dir, file string, check func(*auth.Credential) error) ([]auth.Credential, error) {
	var list []auth.Credential
	if err := readJSON(dir, file, &list); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for i, c := range list {
		switch {
		case c.Name == "":
			return nil, fmt.Errorf("%s: [%d].name: must not be empty", file, i)
		case names[c.Name]:
			return nil, fmt.Errorf("%s: [%d].name: %q is used already; names must be unique", file, i, c.Name)
		case c.Hash == auth.Hash{}:
			return nil, fmt.Errorf("%s: [%d].sha256: must be the SHA-256 of the key or token", file, i)
		}
		names[c.Name] = true
		if err := check(&c); err != nil {
			return nil, fmt.Errorf("%s: [%d].%w", file, i, err)
		}
	}
	return list, nil
}

// LoadRedis reads how Redis is reached below dir. Space around the URL is not part of it. Errors repeat nothing of what they
// are about, for the URL holds a password.
func LoadRedis(dir string) (Redis, error) {
	text, err := readFile(dir, RedisURLFile)
	if err != nil {
		return Redis{}, err
	}
	loaded := Redis{URL: strings.TrimSpace(string(text))}
	parsed, err := url.Parse(loaded.URL)
	if err != nil {
		return Redis{}, fmt.Errorf("%s: must be a URL such as redis://user:password@host:6379/0", RedisURLFile)
	}
	if !slices.Contains([]string{"redis", "rediss", "unix"}, parsed.Scheme) {
		return Redis{}, fmt.Errorf("%s: must begin with redis://, rediss:// or unix://", RedisURLFile)
	}
	for file, into := range map[string]*string{RedisCAFile: &loaded.TLS.CA, RedisCertificateFile: &loaded.TLS.Certificate, RedisKeyFile: &loaded.TLS.Key} {
		content, err := readFile(dir, file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Redis{}, err
		}
		*into = string(content)
	}
	switch err := stream.CheckTLS(loaded.URL, loaded.TLS); {
	case errors.Is(err, stream.ErrCA):
		return Redis{}, fmt.Errorf("%s: %w", RedisCAFile, err)
	case err != nil:
		return Redis{}, fmt.Errorf("%s, %s: %w", RedisCertificateFile, RedisKeyFile, err)
	}
	return loaded, nil
}

// PlatformCredentials reads the Secret mounted for one platform: its keys with their values. A line end behind
// a value, which editors and echo leave, is not part of it. Without a directory for the platform the error is an
// [fs.ErrNotExist].
func PlatformCredentials(dir, platform string) (map[string]string, error) {
	return credentials(dir, PlatformsDir, "platform", platform)
}

// SourceCredentials reads what of the Secrets of one source is mounted, as [PlatformCredentials] does.
func SourceCredentials(dir, source string) (map[string]string, error) {
	return credentials(dir, SourcesDir, "source", source)
}

func credentials(dir, below, kind, name string) (map[string]string, error) {
	if !isName(name) {
		return nil, fmt.Errorf("%s %q: %s", kind, name, nameRule)
	}
	directory := filepath.Join(below, name)
	volume := snapshot(filepath.Join(dir, directory))
	entries, err := os.ReadDir(volume)
	if err != nil {
		return nil, fmt.Errorf("%s: the Secret of %s %s must be mounted there: %w", directory, kind, name, bare(err))
	}
	found := map[string]string{}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue // the kubelet's own; a Secret's key may begin with a dot, but none of ours does
		}
		value, err := readBounded(filepath.Join(volume, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", directory, entry.Name(), err)
		}
		found[entry.Name()] = strings.TrimRight(string(value), "\r\n")
	}
	return found, nil
}

// readJSON reads a file strictly into v. Errors name the file and the member, never the member's value.
func readJSON(dir, file string, v any) error {
	text, err := readFile(dir, file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("%s: %w", file, explain(err))
	}
	return nil
}

func readFile(dir, file string) ([]byte, error) {
	path := filepath.Join(dir, filepath.FromSlash(file))
	text, err := readBounded(filepath.Join(snapshot(filepath.Dir(path)), filepath.Base(path)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return text, nil
}

// snapshot returns the directory that a mounted volume's files are in at the moment. The kubelet replaces all
// files of a volume at once by pointing its link ..data elsewhere; reading through the link's target never mixes
// two states.
func snapshot(dir string) string {
	if target, err := filepath.EvalSymlinks(filepath.Join(dir, "..data")); err == nil {
		return target
	}
	return dir
}

func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, bare(err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return nil, bare(err)
	}
	if len(text) > maxFileBytes {
		return nil, fmt.Errorf("must not be larger than %d bytes", maxFileBytes)
	}
	return text, nil
}

// bare takes the path out of a file system error, where the message around it has a better one.
func bare(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// explain words a decoding error: where, and what would be right there.
func explain(err error) error {
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic):
		return fmt.Errorf("%s: %w", memberPath(semantic.JSONPointer), explainMember(semantic))
	case errors.As(err, &syntactic):
		// Its cause repeats what stands there.
		return fmt.Errorf("%s: must be JSON, but at byte %d it is not", memberPath(syntactic.JSONPointer), syntactic.ByteOffset)
	default:
		return err
	}
}

func explainMember(e *json.SemanticError) error {
	switch {
	case errors.Is(e.Err, json.ErrUnknownName):
		return errors.New("is not known to this version of the collector: remove it, or run the version that knows it")
	case e.Err != nil:
		return e.Err
	default:
		return fmt.Errorf("must be %s", expected(e.GoType))
	}
}

// expected says what of JSON a Go type is read from.
func expected(t reflect.Type) string {
	if t == nil {
		return "something else"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Slice:
		return "an array"
	case reflect.Map, reflect.Pointer:
		return "an object"
	case reflect.Struct:
		if _, isText := reflect.TypeAssert[encoding.TextUnmarshaler](reflect.New(t)); isText {
			return "a string"
		}
		return "an object"
	default:
		return "a string"
	}
}

// memberPath writes a JSON pointer the way the API's users write field paths: "platforms[0].name".
func memberPath(pointer jsontext.Pointer) string {
	var b strings.Builder
	for token := range pointer.Tokens() {
		switch _, err := strconv.Atoi(token); {
		case err == nil:
			b.WriteString("[" + token + "]")
		case b.Len() == 0:
			b.WriteString(token)
		default:
			b.WriteString("." + token)
		}
	}
	if b.Len() == 0 {
		return "the document"
	}
	return b.String()
}
