package redisserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// Fsync is how often the append-only file is forced to the disk.
type Fsync string

// The fsync policies, as Redis spells them.
const (
	FsyncAlways   Fsync = "always"
	FsyncEverySec Fsync = "everysec"
)

// Options say how a server runs.
type Options struct {
	// Dir holds data, log, locks and socket; it is made where it is missing. One server at a time uses it.
	Dir string
	// Persist keeps the data in an append-only file; without it they end with the process.
	Persist bool
	// Fsync is for Persist; "" means [FsyncAlways].
	Fsync Fsync
	// Loopback asks for a port on 127.0.0.1 even where a Unix socket would do.
	Loopback bool
	// Extra are further lines of redis.conf.
	Extra []string
}

// Files in [Options].Dir.
const (
	logName    = "redis.log"
	socketName = "redis.sock"
	// ownerLock is held by the process that started the server, serverLock by the server itself.
	ownerLock  = "owner.lock"
	serverLock = "server.lock"
	// urlName holds the server's URL, so that a server that was left over can be ended; readable by the owner alone.
	urlName = "redis.url"
)

// maxSocketPath is the longest path that a Unix socket takes on every system.
const maxSocketPath = 103

// startTimeout is how long a server may take until it answers, loading its data included.
const startTimeout = 2 * time.Minute

// Server is a running redis-server. Its methods are for one goroutine at a time.
type Server struct {
	binary   Binary
	options  Options
	owner    *os.File
	socket   string
	port     int
	password string
	process  *os.Process
	// exited is closed when the process is gone.
	exited chan struct{}
}

// Start starts a server and waits until it answers. It listens on a Unix socket in the directory, or, where
// that path is too long, on a free loopback port with a password. eviction is off, as Weir needs it. A server
// that an ended process left in the same directory is ended first. It fails where a living process uses the
// directory, and where the server does not come up, with the last lines of its log.
func Start(ctx context.Context, binary Binary, options Options) (*Server, error) {
	dir, err := filepath.Abs(options.Dir)
	if err != nil {
		return nil, err
	}
	options.Dir = dir
	if options.Fsync == "" {
		options.Fsync = FsyncAlways
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	owner, err := tryLock(filepath.Join(dir, ownerLock))
	if errors.Is(err, errLocked) {
		return nil, fmt.Errorf("redis directory %s is in use by another running process", dir)
	}
	if err != nil {
		return nil, err
	}
	s := &Server{binary: binary, options: options, owner: owner, password: rand.Text()}
	if socket := filepath.Join(dir, socketName); !options.Loopback && len(socket) <= maxSocketPath {
		s.socket = socket
	}
	if err := s.launch(ctx); err != nil {
		owner.Close()
		return nil, err
	}
	return s, nil
}

// URL returns where the server listens, with its password: unix:///path or redis://:password@127.0.0.1:port.
func (s *Server) URL() string {
	if s.socket != "" {
		return (&url.URL{Scheme: "unix", Path: s.socket}).String()
	}
	return (&url.URL{
		Scheme: "redis", User: url.UserPassword("", s.password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)),
	}).String()
}

// Exited returns a channel that is closed when the process has ended, by whatever cause.
func (s *Server) Exited() <-chan struct{} { return s.exited }

// Stop ends the server gracefully, after it has written what it holds, and gives the directory free. When ctx
// ends first the server is killed. Stop of a stopped server does nothing.
func (s *Server) Stop(ctx context.Context) error {
	defer s.owner.Close()
	return s.end(ctx)
}

func (s *Server) end(ctx context.Context) error {
	if err := s.process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop redis-server: %w", err)
	}
	select {
	case <-s.exited:
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("redis-server did not stop in time: %w", ctx.Err()), s.Kill())
	}
}

// Kill ends the server at once, as a crash would, and waits until it is gone. [Server.Restart] brings it back.
func (s *Server) Kill() error {
	if err := s.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill redis-server: %w", err)
	}
	<-s.exited
	return nil
}

// Restart starts the server again at the same address, after having stopped it where it still runs.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.end(ctx); err != nil {
		return err
	}
	return s.launch(ctx)
}

// launch starts the process and waits until it answers.
func (s *Server) launch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	lock, err := s.lockDirectory(ctx)
	if err != nil {
		return err
	}
	// The server has inherited the lock by then; it must not be ours beyond that.
	defer lock.Close()
	fresh := s.socket == "" && s.port == 0
	for attempt := 1; ; attempt++ {
		if s.socket == "" && s.port == 0 {
			if s.port, err = freePort(); err != nil {
				return err
			}
		}
		err = s.startProcess(lock)
		if err == nil {
			err = s.awaitReady(ctx)
		}
		switch {
		case err == nil:
			return nil
		case attempt == 5:
			return err
		case strings.Contains(err.Error(), tornFile):
			if err := s.cutTorn(ctx); err != nil {
				return err
			}
		case fresh && strings.Contains(err.Error(), "Address already in use"):
			s.port = 0 // another program has taken it since it was found free
		default:
			return err
		}
	}
}

// lockDirectory takes the lock that a server holds as long as it lives, and ends a server that was left over.
func (s *Server) lockDirectory(ctx context.Context) (*os.File, error) {
	path := filepath.Join(s.options.Dir, serverLock)
	lock, err := tryLock(path)
	if !errors.Is(err, errLocked) {
		return lock, err
	}
	if err := s.shutDownLeftover(ctx); err != nil {
		return nil, err
	}
	lock, err = lockFile(ctx, path, 30*time.Second)
	if errors.Is(err, errLocked) {
		return nil, fmt.Errorf("a redis-server that was left over in %s does not end; end it and start again", s.options.Dir)
	}
	return lock, err
}

// shutDownLeftover asks the server that holds the directory to end. One that is ending already, or does not
// answer, is no error: the lock tells when it is gone.
func (s *Server) shutDownLeftover(ctx context.Context) error {
	address, err := os.ReadFile(filepath.Join(s.options.Dir, urlName))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	options, err := redis.ParseURL(strings.TrimSpace(string(address)))
	if err != nil {
		return nil
	}
	options.MaxRetries = -1
	options.DialerRetries = 1
	client := redis.NewClient(options)
	defer client.Close()
	// The address may be another server's by now; only the one that works in this directory is ours.
	if held := client.ConfigGet(ctx, "dir").Val()["dir"]; held != s.options.Dir {
		return nil
	}
	client.ShutdownNoSave(ctx)
	return nil
}

// configuration is the redis.conf that the server reads from its standard input, so that the password stands
// on no command line.
func (s *Server) configuration() string {
	lines := []string{
		"dir " + strconv.Quote(s.options.Dir),
		"daemonize no",
		"maxmemory-policy noeviction",
		"lazyfree-lazy-expire yes",
		`save ""`,
		`logfile ""`,
	}
	if s.options.Persist {
		// Without the preamble a rewritten file has commands alone, of what there is. In the other format a stream has its nodes
		// as they are in memory, where what XDEL has deleted is marked as deleted and stays: an erased person's bytes.
		lines = append(lines, "appendonly yes", "appendfsync "+string(s.options.Fsync),
			"aof-use-rdb-preamble no", "aof-load-truncated no") // see cutTorn
	} else {
		lines = append(lines, "appendonly no")
	}
	if s.socket != "" {
		lines = append(lines, "port 0", "unixsocket "+strconv.Quote(s.socket), "unixsocketperm 700")
	} else {
		lines = append(lines, "bind 127.0.0.1", "port "+strconv.Itoa(s.port), "requirepass "+s.password)
	}
	return strings.Join(append(lines, s.options.Extra...), "\n") + "\n"
}

func (s *Server) startProcess(lock *os.File) error {
	if err := os.WriteFile(filepath.Join(s.options.Dir, urlName), []byte(s.URL()+"\n"), 0o600); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(s.options.Dir, logName), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(s.binary.Path, "-")
	cmd.Env = s.binary.Environment()
	cmd.Dir = s.options.Dir
	cmd.Stdin = strings.NewReader(s.configuration())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{lock}
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
		return fmt.Errorf("start redis-server: %w", err)
	}
	s.process, s.exited = cmd.Process, exited
	return nil
}

// awaitReady returns when the server answers; a server that does not is killed. One whose aclfile in [Options].Extra
// shuts out whoever has no user answers so before it has loaded its data.
func (s *Server) awaitReady(ctx context.Context) error {
	options, err := redis.ParseURL(s.URL())
	if err != nil {
		return errors.Join(err, s.Kill())
	}
	options.MaxRetries = -1
	options.DialerRetries = 1
	client := redis.NewClient(options)
	defer client.Close()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		// Knocking first keeps the Redis library from logging each refusal.
		conn, err := (&net.Dialer{}).DialContext(ctx, options.Network, options.Addr)
		if err == nil {
			conn.Close()
			err = client.Ping(ctx).Err()
		}
		if err == nil || strings.HasPrefix(err.Error(), "NOAUTH") {
			return nil
		}
		select {
		case <-s.exited:
			return fmt.Errorf("redis-server ended at once: %s", s.lastWords())
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("redis-server does not answer: %w (%w)", ctx.Err(), err), s.Kill())
		case <-ticker.C:
		}
	}
}

// tornFile is what a server says that does not start because its append-only file ends within a command or a
// transaction, as after a kill while it wrote.
const tornFile = "Unexpected end of file reading the append only file"

// checkNames makes a server's program act as the checker of append-only files, which Redis and Valkey build into it.
const checkNames = "redis-check-aof+valkey-check-aof"

// cutTorn cuts off the end of the append-only file that was not written whole, before the server is started on it: what
// it says of it was never acknowledged. A server that cuts it by itself (aof-load-truncated) leaves the beginning of the
// transaction that the last command belonged to, and what it appends behind that is lost or repeated at the next start.
func (s *Server) cutTorn(ctx context.Context) error {
	manifest := filepath.Join("appendonlydir", "appendonly.aof.manifest")
	check := exec.CommandContext(ctx, s.binary.Path, "--fix", manifest)
	check.Args[0] = checkNames
	check.Env = s.binary.Environment()
	check.Dir = s.options.Dir
	check.Stdin = strings.NewReader("y\n") // whether to cut
	said, err := check.CombinedOutput()
	if err != nil {
		return fmt.Errorf("cut the torn end off the append-only file: %w: %s", err, lastLines(string(said)))
	}
	return nil
}

// lastWords returns the end of the log.
func (s *Server) lastWords() string {
	text, err := os.ReadFile(filepath.Join(s.options.Dir, logName))
	if err != nil {
		return err.Error()
	}
	return lastLines(string(text))
}

func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "; ")
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free loopback port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
