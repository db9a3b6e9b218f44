package clickhouseserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Options say how a server runs.
type Options struct {
	// Dir holds data, log and configuration; it is made where it is missing. One server at a time uses it.
	Dir string
	// Host is the address of this machine that it listens at; "" is 127.0.0.1, which is reached from here alone.
	Host string
	// TLS has the server speak TLS alone; nil is HTTP.
	TLS *TLS
	// Config are further elements of the server's configuration, as XML, such as remote_servers.
	Config string
}

// TLS are the files of a server that speaks TLS, in PEM.
type TLS struct {
	Certificate, Key string
	// ClientCA is the authority of which clients must show a certificate; "" asks for none.
	ClientCA string
}

// User is the user of the server's URL, who may do everything, make other users included.
const User = "weir"

// startTimeout is how long a server may take until it answers, loading its data included.
const startTimeout = 2 * time.Minute

// logName, passwordName and portName are files in [Options].Dir. The password is kept, so that a URL outlives its server.
const (
	logName      = "clickhouse.log"
	passwordName = "password"
	portName     = "port"
)

// Server is a running server. Its methods are for one goroutine at a time.
type Server struct {
	program  string
	options  Options
	password string
	port     int
	process  *os.Process
	// exited is closed when the process is gone.
	exited chan struct{}
}

// Start starts a server on a free port, the same as the last time where that is free, and waits until it answers. It fails
// with the last lines of its log.
func Start(ctx context.Context, program string, options Options) (*Server, error) {
	dir, err := filepath.Abs(options.Dir)
	if err != nil {
		return nil, err
	}
	options.Dir, options.Host = dir, cmp.Or(options.Host, "127.0.0.1")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &Server{program: program, options: options}
	if s.password, err = kept(filepath.Join(dir, passwordName), rand.Text()); err != nil {
		return nil, err
	}
	port, err := kept(filepath.Join(dir, portName), "")
	if err != nil {
		return nil, err
	}
	if s.port, err = strconv.Atoi(port); err != nil || !free(s.address()) {
		if s.port, err = freePort(options.Host); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, portName), []byte(strconv.Itoa(s.port)), 0o600); err != nil {
		return nil, err
	}
	return s, s.launch(ctx)
}

// kept returns what stands in a file, after having written it where there is none.
func kept(path, otherwise string) (string, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return otherwise, os.WriteFile(path, []byte(otherwise), 0o600)
	}
	return string(content), err
}

// address is where the server listens.
func (s *Server) address() string { return net.JoinHostPort(s.options.Host, strconv.Itoa(s.port)) }

// URL returns the server's address for a database: http://weir:PASSWORD@127.0.0.1:PORT/DATABASE.
func (s *Server) URL(database string) string {
	scheme := "http"
	if s.options.TLS != nil {
		scheme = "https"
	}
	return (&url.URL{
		Scheme: scheme, User: url.UserPassword(User, s.password),
		Host: s.address(), Path: "/" + database,
	}).String()
}

// Exited returns a channel that is closed when the process has ended, by whatever cause.
func (s *Server) Exited() <-chan struct{} { return s.exited }

// Stop ends the server gracefully; when ctx ends first it is killed. Stop of a stopped server does nothing.
func (s *Server) Stop(ctx context.Context) error {
	if err := s.process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop clickhouse: %w", err)
	}
	select {
	case <-s.exited:
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("clickhouse did not stop in time: %w", ctx.Err()), s.Kill())
	}
}

// Kill ends the server at once, as a crash would, and waits until it is gone. [Server.Restart] brings it back.
func (s *Server) Kill() error {
	if err := s.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill clickhouse: %w", err)
	}
	<-s.exited
	return nil
}

// Restart starts the server again at the same address, after having stopped it where it still runs.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Stop(ctx); err != nil {
		return err
	}
	return s.launch(ctx)
}

// launch starts the process and waits until it answers.
func (s *Server) launch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.configure(); err != nil {
		return err
	}
	if err := s.startProcess(); err != nil {
		return err
	}
	return s.awaitReady(ctx)
}

// configure writes the configuration and the user, whose password stands in neither. Who reaches the address may show it.
func (s *Server) configure() error {
	port := fmt.Sprintf("<http_port>%d</http_port>", s.port)
	if files := s.options.TLS; files != nil {
		verification := "none"
		if files.ClientCA != "" {
			verification = "strict"
		}
		port = fmt.Sprintf("<https_port>%d</https_port><openSSL><server><certificateFile>%s</certificateFile>"+
			"<privateKeyFile>%s</privateKeyFile><caConfig>%s</caConfig><verificationMode>%s</verificationMode></server></openSSL>",
			s.port, escaped(files.Certificate), escaped(files.Key), escaped(files.ClientCA), verification)
	}
	dir := escaped(s.options.Dir)
	config := "<clickhouse><logger><level>warning</level><console>true</console></logger><listen_host>" + s.options.Host + "</listen_host>" + port +
		"<path>" + dir + "/data/</path><tmp_path>" + dir + "/data/tmp/</tmp_path><user_directories><users_xml><path>" + dir +
		"/users.xml</path></users_xml><local_directory><path>" + dir + "/data/access/</path></local_directory></user_directories>" +
		s.options.Config + "</clickhouse>\n"
	users := fmt.Sprintf("<clickhouse><profiles><default/></profiles><quotas><default/></quotas><users><%s>"+
		"<password_sha256_hex>%x</password_sha256_hex><networks><ip>::/0</ip></networks><profile>default</profile>"+
		"<quota>default</quota><access_management>1</access_management></%s></users></clickhouse>\n", User, sha256.Sum256([]byte(s.password)), User)
	if err := os.WriteFile(filepath.Join(s.options.Dir, "users.xml"), []byte(users), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.options.Dir, "config.xml"), []byte(config), 0o600)
}

func escaped(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text)) // a builder takes everything
	return out.String()
}

func (s *Server) startProcess() error {
	log, err := os.OpenFile(filepath.Join(s.options.Dir, logName), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(s.program, "server", "--config-file="+filepath.Join(s.options.Dir, "config.xml"))
	cmd.Dir = s.options.Dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = endWithParent()
	started, exited := make(chan error), make(chan struct{})
	go func() {
		// The kernel counts the starting thread as the parent, so that thread stays until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			// How the process ended stands in its log; that it ended is all that matters here.
			_ = cmd.Wait()
		}
		close(exited)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start clickhouse: %w", err)
	}
	s.process, s.exited = cmd.Process, exited
	return nil
}

// awaitReady returns when the server answers; one that does not is killed.
func (s *Server) awaitReady(ctx context.Context) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := s.knock(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-s.exited:
			return fmt.Errorf("clickhouse ended at once: %s", s.lastWords())
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("clickhouse does not answer: %w", err), s.Kill())
		case <-ticker.C:
		}
	}
}

// knock asks whether the server is there. Of one that speaks TLS it is enough that it takes connections.
func (s *Server) knock(ctx context.Context) error {
	address := s.address()
	if s.options.TLS != nil {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			connection.Close()
		}
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/ping", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers with %s", answer.Status)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

// lastWords returns the end of the log.
func (s *Server) lastWords() string {
	text, err := os.ReadFile(filepath.Join(s.options.Dir, logName))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "; ")
}

// free says whether nobody listens at an address.
func free(address string) bool {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

func freePort(host string) (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return 0, fmt.Errorf("find a free port at %s: %w", host, err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
