package operator

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-dev/weir/cli/flags"
)

const (
	// replayer is Redis's default user. Nobody can be it: it is switched off and has no password. But Redis runs what it reads
	// from its append-only file as this user, and leaves out every transaction with a command that the user may not run.
	replayer = "user default off resetpass sanitize-payload ~* &* +@all"
	// prober may PING, with any password, so that a probe needs none.
	prober = "user " + probeName + " on nopass sanitize-payload resetkeys resetchannels -@all +ping"
	// probeName is the prober's name, as the chart's probe has it.
	probeName = "probe"
)

// aclFile prepares the ACL file of a Redis that is about to start, for the chart's: Redis neither starts without
// one nor takes a password from elsewhere then. The URL's user may do everything, the user probe PING alone, and
// connections without a user nothing; the Properties' users, and whoever else is in the file, stay.
func aclFile(args []string, output io.Writer) error {
	var urlFile, path string
	set := flags.NewSet(program + " acl-file")
	set.StringVar(&urlFile, "redis-url-file", "", "`FILE` with the URL that the operator uses: its user and password are those of the administrator")
	set.StringVar(&path, "acl-file", "", "`FILE` that Redis reads as its aclfile; its other users stay")
	if err := flags.Parse(set, "Usage: "+set.Name()+" FLAG…\n\n", args, output); err != nil {
		return err
	}
	var errs flags.Errors
	if path == "" {
		errs.Add("--acl-file: must name Redis's aclfile")
	}
	administrator, err := administratorOf(urlFile)
	if err != nil {
		errs.Add("--redis-url-file: %v", err)
	}
	if errs != nil {
		return errs
	}
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return replaceFile(path, aclLines(before, administrator))
}

// administratorOf returns the user of the URL in a file. An error repeats nothing of the URL.
func administratorOf(urlFile string) (*url.Userinfo, error) {
	if urlFile == "" {
		return nil, errors.New("must name a file with a URL such as redis://user:password@host:6379")
	}
	content, err := os.ReadFile(urlFile)
	if err != nil {
		return nil, err
	}
	address, err := url.Parse(strings.TrimSpace(string(content)))
	if err != nil || address.User == nil {
		return nil, fmt.Errorf("%s must hold a URL with user and password, such as redis://user:password@host:6379", urlFile)
	}
	password, _ := address.User.Password()
	name := address.User.Username()
	if password == "" || name == "" || name == "default" || name == probeName || strings.ContainsAny(name, " \t\r\n\"'\\") {
		return nil, fmt.Errorf("the URL in %s must name a user other than default and probe, without spaces or quotes, and a password", urlFile)
	}
	return address.User, nil
}

// aclLines returns the lines of an ACL file with the administrator's, the probe's and the default user as they shall be. The
// password is hashed, as Redis itself keeps it.
func aclLines(before []byte, administrator *url.Userinfo) []byte {
	name := administrator.Username()
	password, _ := administrator.Password()
	sum := sha256.Sum256([]byte(password))
	lines := []string{replayer, prober, "user " + name + " on sanitize-payload #" + hex.EncodeToString(sum[:]) + " ~* &* +@all"}
	for line := range bytes.Lines(before) {
		words := strings.Fields(string(line))
		if len(words) > 1 && !slices.Contains([]string{"default", probeName, name}, words[1]) {
			lines = append(lines, strings.Join(words, " "))
		}
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}

// replaceFile writes a file in one step, so that an end in the middle leaves the old one.
func replaceFile(path string, content []byte) (err error) {
	temporary, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temporary.Name()))
		}
	}()
	_, err = temporary.Write(content)
	if err == nil {
		err = temporary.Sync()
	}
	err = errors.Join(err, temporary.Close())
	if err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}
