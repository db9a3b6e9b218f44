package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// errNoNode says that no node runs of this state directory.
var errNoNode = errors.New("no node is up")

// firstProcess is the node's first process, as the machine sees it.
type firstProcess struct {
	pid int
}

// born is when a process started, in the kernel's ticks, by which it is told from another that got its number.
// ended is true for one that nobody has waited for yet.
func born(pid int) (ticks string, ended bool, err error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", true, err
	}
	// The second field is the name in brackets, and may contain anything.
	_, rest, ok := strings.Cut(string(content[bytes.LastIndexByte(content, ')'):]), " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return "", false, fmt.Errorf("/proc/%d/stat cannot be read: %q", pid, content)
	}
	return fields[19], fields[0] == "Z" || fields[0] == "X", nil
}

// pidFile names the first process: its number and when it was born.
func (n *Node) pidFile() string { return filepath.Join(n.State, "pid") }

// remember writes down which process is the node's first.
func (n *Node) remember(pid int) error {
	ticks, _, err := born(pid)
	if err != nil {
		return err
	}
	return os.WriteFile(n.pidFile(), fmt.Appendf(nil, "%d %s\n", pid, ticks), 0o600)
}

// running returns the first process of the node that is up, or errNoNode.
func (n *Node) running() (firstProcess, error) {
	content, err := os.ReadFile(n.pidFile())
	if errors.Is(err, os.ErrNotExist) {
		return firstProcess{}, errNoNode
	}
	if err != nil {
		return firstProcess{}, err
	}
	fields := strings.Fields(string(content))
	if len(fields) != 2 {
		return firstProcess{}, errNoNode // it was being written when the machine stopped
	}
	pid, err := strconv.Atoi(fields[0])
	if err != nil {
		return firstProcess{}, fmt.Errorf("%s holds no process number: %w", n.pidFile(), err)
	}
	if ticks, ended, err := born(pid); err != nil || ended || ticks != fields[1] {
		return firstProcess{}, errNoNode
	}
	return firstProcess{pid: pid}, nil
}

// launch starts the node's first process in namespaces of its own. It waits at its gate, which open opens once;
// closing gate without that ends it.
func (n *Node) launch(packages string) (process firstProcess, gate *os.File, err error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return firstProcess{}, nil, err
	}
	defer reader.Close()
	log, err := os.OpenFile(n.LogFile("node"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return firstProcess{}, nil, errors.Join(err, writer.Close())
	}
	defer log.Close()
	command := exec.Command(n.Self, "inside", "--root", n.root(), "--packages", packages, "--programs", n.Programs, "--self", n.Self) //nolint:noctx // it outlives this process
	command.Stdin, command.Stdout, command.Stderr = reader, log, log
	command.Env = []string{"PATH=" + searchPath, "HOME=/root"}
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
	if err := command.Start(); err != nil {
		return firstProcess{}, nil, errors.Join(fmt.Errorf("start the node's first process: %w", err), writer.Close())
	}
	if err := n.remember(command.Process.Pid); err != nil {
		return firstProcess{}, nil, errors.Join(err, writer.Close(), command.Process.Kill())
	}
	// It is waited for so that it leaves no zombie where it ends before this process does.
	go func() { _ = command.Wait() }()
	return firstProcess{pid: command.Process.Pid}, writer, nil
}

// end kills the first process, and with it everything in the node, and waits until all of it is gone.
func (p firstProcess) end(ctx context.Context) error {
	if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("end the node: %w", err)
	}
	return poll(ctx, 30*time.Second, "the end of the node's processes", func(context.Context) (bool, error) {
		_, ended, err := born(p.pid)
		return ended || err != nil, nil
	})
}

// inside returns where the machine reaches a file of the node's, on file systems that only the node sees, too. Sockets are
// reached this way also because their paths must be short.
func (p firstProcess) inside(path string) string { return fmt.Sprintf("/proc/%d/root%s", p.pid, path) }

// control is a client of the first process's control interface.
func (p firstProcess) control() *http.Client {
	return &http.Client{
		Timeout: 2*stopTimeout + 5*time.Second,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				var dialer net.Dialer
				return dialer.DialContext(ctx, "unix", p.inside(controlSocket))
			},
		},
	}
}

// ask sends one request to the control interface and decodes its answer into answer unless that is nil.
func (p firstProcess) ask(ctx context.Context, method, path string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, method, "http://node"+path, http.NoBody)
	if err != nil {
		return err
	}
	response, err := p.control().Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return errors.New(strings.TrimSpace(string(content)))
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(content, answer)
}

// start has the first process start programs, in this order.
func (p firstProcess) start(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := p.ask(ctx, http.MethodPost, "/programs/"+name+"/start", nil); err != nil {
			return err
		}
	}
	return nil
}

// Control starts, stops, restarts or kills one program of the node: action is the verb.
func (n *Node) Control(ctx context.Context, action, name string) error {
	if !named(name) {
		return fmt.Errorf("no program is named %q: they are %s", name, strings.Join(programNames(), ", "))
	}
	process, err := n.running()
	if err != nil {
		return err
	}
	return process.ask(ctx, http.MethodPost, "/programs/"+name+"/"+action, nil)
}

// Statuses lists the programs of the node that is up.
func (n *Node) Statuses(ctx context.Context) ([]Status, error) {
	process, err := n.running()
	if err != nil {
		return nil, err
	}
	var list []Status
	return list, process.ask(ctx, http.MethodGet, "/programs", &list)
}

// poll asks again and again until the answer is yes, an error or too late; awaited says what for.
func poll(ctx context.Context, timeout time.Duration, awaited string, ask func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		done, err := ask(ctx)
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s did not come within %s", awaited, timeout)
		case <-ticker.C:
		}
	}
}

// exec runs a command inside the node, with an input that may be nil, and returns what it prints.
func (p firstProcess) exec(ctx context.Context, input io.Reader, args ...string) ([]byte, error) {
	enter := []string{"--target", strconv.Itoa(p.pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--", "/usr/bin/env", "-i", "PATH=" + searchPath}
	var said bytes.Buffer
	command := exec.CommandContext(ctx, "nsenter", append(enter, args...)...)
	command.Stdin, command.Stderr = input, &said
	output, err := command.Output()
	if err != nil {
		words := bytes.TrimSpace(append(said.Bytes(), output...))
		return nil, fmt.Errorf("%s: %w: %s", args[0], err, words[max(0, len(words)-600):])
	}
	return output, nil
}

// Exec runs a command inside the node with this process's input and outputs.
func (n *Node) Exec(ctx context.Context, args ...string) error {
	process, err := n.running()
	if err != nil {
		return err
	}
	enter := []string{"--target", strconv.Itoa(process.pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--", "/usr/bin/env", "PATH=" + searchPath}
	command := exec.CommandContext(ctx, "nsenter", append(enter, args...)...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, n.Out, os.Stderr
	return command.Run()
}
