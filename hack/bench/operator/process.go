package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/weir-dev/weir/collector/server"
)

// process is a running operator.
type process struct {
	cmd     *exec.Cmd
	metrics string
	log     *os.File
}

// startOperator starts the operator, with more flags if need be, and waits until it answers.
func (b *bench) startOperator(ctx context.Context, flags ...string) (*process, error) {
	metrics, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(b.directory, "operator.log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	flags = append([]string{"--image", "weir:bench", "--redis-url-file", b.cluster.redisURL, "--allow-host", "*=*",
		"--metrics-listen", metrics, "--health-listen", "127.0.0.1:0"}, flags...)
	cmd := exec.CommandContext(ctx, b.binary, flags...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+b.cluster.kubeconfig)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, metrics: "http://" + metrics + "/metrics", log: log}
	b.stops = append(b.stops, func() { _ = p.end() })
	if err := p.await(ctx); err != nil {
		words, readErr := os.ReadFile(log.Name())
		return nil, errors.Join(fmt.Errorf("the operator does not answer: %w:\n%s", err, words), readErr)
	}
	return p, nil
}

func freeAddress(ctx context.Context) (string, error) {
	listener, err := server.Listen(ctx, "127.0.0.1:0", "free port")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// await waits until the operator serves its metrics.
func (p *process) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return poll(ctx, 50*time.Millisecond, func() error { _, err := p.sample(ctx); return err })
}

// end lets the operator finish, once.
func (p *process) end() error {
	if p.cmd.ProcessState != nil {
		return nil
	}
	return errors.Join(p.cmd.Process.Signal(syscall.SIGTERM), p.cmd.Wait(), p.log.Close())
}

// usage is what the operator has used and done until now.
type usage struct {
	// calls are requests to the API server by their HTTP method; GET is reading, watching and listing too.
	calls map[string]float64
	// reconciles are those that have ended; queued are Properties that wait for one, active those under way.
	reconciles, queued, active float64
	cpu                        time.Duration
	// resident and peak are bytes of memory.
	resident, peak int64
}

func (u usage) writes() float64 {
	sum := 0.0
	for method, n := range u.calls {
		if method != http.MethodGet {
			sum += n
		}
	}
	return sum
}

// since returns what has been done after an earlier sample; memory is as it is now.
func (u usage) since(before usage) usage {
	calls := maps.Clone(u.calls)
	for method, n := range before.calls {
		calls[method] -= n
	}
	u.calls, u.reconciles, u.cpu = calls, u.reconciles-before.reconciles, u.cpu-before.cpu
	return u
}

// String lists the calls by their methods.
func (u usage) String() string {
	var parts []string
	for _, method := range slices.Sorted(maps.Keys(u.calls)) {
		if u.calls[method] > 0 {
			parts = append(parts, fmt.Sprintf("%s %.0f", method, u.calls[method]))
		}
	}
	return strings.Join(parts, ", ")
}

// sample reads the operator's metrics, and from the kernel what it uses.
func (p *process) sample(ctx context.Context) (usage, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.metrics, nil)
	if err != nil {
		return usage{}, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return usage{}, fmt.Errorf("the operator's metrics: %w", err)
	}
	defer answer.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		return usage{}, fmt.Errorf("the operator's metrics: %w", err)
	}
	u := usage{calls: map[string]float64{}}
	for _, metric := range families["rest_client_requests_total"].GetMetric() {
		u.calls[label(metric, "method")] += metric.GetCounter().GetValue()
	}
	for _, metric := range families["controller_runtime_reconcile_total"].GetMetric() {
		u.reconciles += metric.GetCounter().GetValue()
	}
	for _, metric := range families["workqueue_depth"].GetMetric() {
		u.queued += metric.GetGauge().GetValue()
	}
	for _, metric := range families["controller_runtime_active_workers"].GetMetric() {
		u.active += metric.GetGauge().GetValue()
	}
	return u, p.sampleKernel(&u)
}

func label(metric *dto.Metric, name string) string {
	for _, pair := range metric.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

// sampleKernel reads memory and processor time from /proc.
func (p *process) sampleKernel(u *usage) error {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || (fields[0] != "VmRSS:" && fields[0] != "VmHWM:") {
			continue
		}
		kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return err
		}
		if fields[0] == "VmRSS:" {
			u.resident = kilobytes << 10
		} else {
			u.peak = kilobytes << 10
		}
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return err
	}
	// pid (comm) state ppid …: the user's and the system's time, in ticks of 10 ms, are the 12th and 13th field behind the name.
	_, behind, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(behind)
	if len(fields) < 13 {
		return errors.New("the kernel's words on a process are too short")
	}
	for _, field := range fields[11:13] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return err
		}
		u.cpu += time.Duration(ticks) * 10 * time.Millisecond
	}
	return nil
}

// settle waits until no Property waits and nothing has been written for a while. Looking at everything again, as the
// operator does now and then, is no reason to wait.
func (p *process) settle(ctx context.Context) (usage, error) {
	const quiet = 4 * time.Second // longer than between two looks at Redis
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	last, err := p.sample(ctx)
	since, busy := time.Now(), errors.New("the operator has only just been quiet")
	if err != nil {
		return last, err
	}
	err = poll(ctx, 250*time.Millisecond, func() error {
		now, err := p.sample(ctx)
		if err != nil {
			return errors.Join(busy, err)
		}
		if done := now.since(last); done.writes() > 0 {
			since, busy = time.Now(), fmt.Errorf("the operator still writes: %s", done)
		}
		last = now
		if time.Since(since) < quiet || now.queued > 0 {
			return fmt.Errorf("%w; %.0f Properties wait, %.0f were reconciled", busy, now.queued, now.reconciles)
		}
		return nil
	})
	return last, err
}

// poll repeats check until it returns nil, or until ctx ends.
func poll(ctx context.Context, interval time.Duration, check func() error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}
