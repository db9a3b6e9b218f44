package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// forward leads a free port of this machine to a Service's port 80 until the test ends, and returns the URL.
func forward(t *testing.T, namespace, service string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "kubectl", "-n", namespace, "port-forward", "service/"+service, ":80")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+settings.kubeconfig)
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			select {
			case lines <- scanner.Text():
			default: // a line for each connection; only the first says where
			}
		}
		_ = cmd.Wait() // it ends when the test does, by a signal
	}()
	select {
	case line, open := <-lines: // Forwarding from 127.0.0.1:34567 -> 8080
		if _, address, found := strings.Cut(line, "Forwarding from "); open && found {
			address, _, _ = strings.Cut(address, " ")
			return "http://" + address
		}
		t.Fatalf("no port leads to the Service %s: %s", service, line)
	case <-time.After(30 * time.Second):
		t.Fatalf("no port leads to the Service %s", service)
	}
	return ""
}
