package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Root is what the first process needs to know to build the node's root file system; all paths are the machine's.
type Root struct {
	Folder   string // becomes the root
	Packages string // unpacked packages, laid over the machine's /usr; may be empty
	Programs string // Kubernetes' programs
	Self     string // the executable with the agents
}

// kernelSettings are machine-wide and the kubelet wants to set them. Inside the node files with these values lie
// over them, so that the kubelet is content and the machine unchanged.
var kernelSettings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// Inside is the node's first process, which [Node.Up] starts in fresh namespaces. It waits until gate says that
// the network is there, takes root for its root file system and then runs the programs as it is told through its
// control socket. It ends only with an error, or by being killed.
func Inside(root Root, gate io.Reader, logger *slog.Logger) error {
	if _, err := io.ReadFull(gate, make([]byte, 1)); err != nil {
		return fmt.Errorf("wait for the network: %w", err)
	}
	if err := root.mount(); err != nil {
		return err
	}
	if err := root.enter(); err != nil {
		return err
	}
	if err := settle(); err != nil {
		return err
	}
	return supervise(logger)
}

// mounting is one mount of the node's root file system.
type mounting struct {
	source, target, kind string
	flags                uintptr
	data                 string
}

// mount builds the root file system in this process's own mount namespace.
func (r Root) mount() error {
	// First of all: what follows must not spread to the machine.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("part from the machine's mounts: %w", err)
	}
	at := func(inside string) string { return filepath.Join(r.Folder, inside) }
	list := []mounting{{r.Folder, r.Folder, "", syscall.MS_BIND, ""}}
	if r.Packages == "" {
		list = append(list, mounting{"/usr", at("usr"), "", syscall.MS_BIND | syscall.MS_REC, ""})
	} else {
		list = append(list, mounting{"overlay", at("usr"), "overlay", syscall.MS_RDONLY, "lowerdir=" + filepath.Join(r.Packages, "usr") + ":/usr"})
	}
	// On most distributions these are links into /usr, which are there already.
	for _, folder := range []string{"/bin", "/sbin", "/lib", "/lib64"} {
		if info, err := os.Lstat(folder); err == nil && info.IsDir() {
			list = append(list, mounting{folder, at(folder), "", syscall.MS_BIND | syscall.MS_REC, ""})
		}
	}
	list = append(list,
		mounting{"proc", at("proc"), "proc", syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC, ""},
		mounting{"sysfs", at("sys"), "sysfs", syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC, ""}, // shows this network namespace
		mounting{"/sys/fs/cgroup", at("sys/fs/cgroup"), "", syscall.MS_BIND | syscall.MS_REC, ""},
		mounting{"/dev", at("dev"), "", syscall.MS_BIND | syscall.MS_REC, ""},
		mounting{"tmpfs", at("run"), "tmpfs", syscall.MS_NOSUID | syscall.MS_NODEV, "mode=755"},
		mounting{r.Programs, at(programFolder), "", syscall.MS_BIND, ""},
		mounting{r.Self, at(agentFile), "", syscall.MS_BIND, ""},
	)
	for _, m := range list {
		if err := syscall.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s on %s: %w", m.source, m.target, err)
		}
	}
	return nil
}

// enter makes the root file system this process's own, and lets go of the machine's.
func (r Root) enter() error {
	if err := os.Chdir(r.Folder); err != nil {
		return err
	}
	// The old root comes to lie over the new one and is taken off: no folder is needed for it.
	if err := syscall.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root file system: %w", err)
	}
	if err := syscall.Unmount(".", syscall.MNT_DETACH); err != nil {
		return fmt.Errorf("let go of the machine's file systems: %w", err)
	}
	// The kubelet's mounts have to reach the containers.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share mounts with containers: %w", err)
	}
	return os.Chdir("/")
}

// settle gives the node its name and the settings that its programs count on.
func settle() error {
	if err := syscall.Sethostname([]byte(Name)); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return fmt.Errorf("forward packets between pods: %w", err)
	}
	for setting, value := range kernelSettings {
		file, stand := "/proc/sys/"+setting, filepath.Join("/run/node/kernel", strings.ReplaceAll(setting, "/", "."))
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := writeFile(stand, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := syscall.Mount(stand, file, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("shield %s: %w", file, err)
		}
	}
	return nil
}

// supervise runs the programs until the end of the process.
func supervise(logger *slog.Logger) error {
	content, err := os.ReadFile(programsFile)
	if err != nil {
		return err
	}
	var list []program
	if err := json.Unmarshal(content, &list); err != nil {
		return fmt.Errorf("%s: %w", programsFile, err)
	}
	s := newSupervisor(list, logFolder, logger)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	go func() {
		for range children {
			s.bury()
		}
	}()
	if err := os.MkdirAll(filepath.Dir(controlSocket), 0o755); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "unix", controlSocket)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second}
	return server.Serve(listener)
}
