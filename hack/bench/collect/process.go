package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

// apiKey is accepted by the collectors that are measured.
const apiKey = "bench"

// bareArgument makes this program the bare handler.
const bareArgument = "bare"

// serveBare serves what a handler cannot do without: a route, the body, an answer. It prints its address.
func serveBare(ctx context.Context, out io.Writer) error {
	listener, err := server.Listen(ctx, "127.0.0.1:0", "bare")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, listener.Addr())
	router := chi.NewRouter()
	router.Post("/collect/{api_key}", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"ok":true,"event_id":"0193485a-7b1c-7d2e-9f3a-4b5c6d7e8f90"}`)
	})
	bare := &http.Server{Handler: router, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { bare.Close() })
	if err := bare.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// process is a running program that is measured.
type process struct {
	address string
	id      int
}

// launch starts a program, which is ended with the bench. Where address is "" it is the first line that the program
// prints.
func (b *bench) launch(ctx context.Context, cmd *exec.Cmd, address string) (*process, error) {
	var words bytes.Buffer
	cmd.Stderr = &words
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	b.stops = append(b.stops, func() {
		_ = cmd.Process.Signal(os.Interrupt) // it has ended already
		_ = cmd.Wait()
	})
	if address == "" {
		if address, err = bufio.NewReader(stdout).ReadString('\n'); err != nil {
			return nil, fmt.Errorf("%w: %s", err, words.String())
		}
		address = strings.TrimSpace(address)
	}
	p := &process{address: address, id: cmd.Process.Pid}
	if err := p.await(ctx); err != nil {
		return nil, fmt.Errorf("%w: %s", err, words.String())
	}
	return p, nil
}

// await waits until the program answers HTTP.
func (p *process) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+"/", nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			return answer.Body.Close()
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return err
		}
	}
}

// cpu returns the processor time that the program has used, in the kernel's ticks of 10 ms.
func (p *process) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.id))
	if err != nil {
		return 0, err
	}
	// pid (comm) state ppid …: the user's and the system's time are the 12th and 13th field behind the name.
	_, behind, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(behind)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat is too short", p.id)
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// site is a collector with its Redis.
type site struct {
	*process
	redis *connection
}

// startSite starts a Redis with an append-only file, and a collector that serves one Property of two platforms from it.
func (b *bench) startSite(ctx context.Context, fsync string) (*site, error) {
	logger := slogTo(os.Stderr)
	binary, err := redisserver.Find(ctx, logger)
	if err != nil {
		return nil, err
	}
	directory := filepath.Join(b.directory, fsync)
	redis, err := redisserver.Start(ctx, binary, redisserver.Options{
		Dir: filepath.Join(directory, "redis"), Persist: true, Fsync: redisserver.Fsync(fsync), Loopback: true,
		// A rewrite of the file in the middle of a run would be measured in that run alone.
		Extra: []string{"auto-aof-rewrite-percentage 0"},
	})
	if err != nil {
		return nil, err
	}
	b.stops = append(b.stops, func() { _ = redis.Kill() })
	client, err := stream.Dial(redis.URL(), stream.DialOptions{})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := client.Load(ctx); err != nil {
		return nil, err
	}
	configuration := filepath.Join(directory, "config")
	if err := writeConfiguration(configuration, redis.URL()); err != nil {
		return nil, err
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, b.collector, "--roles", "collect", "--config-dir", configuration,
		"--listen", address, "--metrics-listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "GOGC=400") // as in the pods that the operator makes
	collector, err := b.launch(ctx, cmd, address)
	if err != nil {
		return nil, err
	}
	connection, err := connect(ctx, redis.URL())
	return &site{collector, connection}, err
}

// writeConfiguration writes a Property with the two platforms that a purchase's size is stated for.
func writeConfiguration(directory, redisURL string) error {
	property := config.Property{
		Namespace: "default", Name: "bench", Currency: "EUR", TimeZone: "UTC", DeduplicationWindowHours: 168,
		Retention: config.Retention{Days: 62, MaxEvents: 1 << 40}, Limits: config.Limits{MaxBodyBytes: 65536},
		Platforms: []platforms.Platform{
			{Name: "meta", Type: platforms.TypeMeta, Settings: platforms.Settings{Meta: &platforms.Meta{PixelID: "1234567890"}}},
			{Name: "crm", Type: platforms.TypeWebhook, Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: "https://crm.example.com/hook"}}},
		},
		Egress: config.Egress{AllowCIDRs: []netip.Prefix{}},
	}
	rendered, err := json.Marshal(property)
	if err != nil {
		return err
	}
	keys, err := json.Marshal([]auth.Credential{{Name: "default", Hash: auth.HashOf(apiKey)}})
	if err != nil {
		return err
	}
	for file, text := range map[string][]byte{
		config.PropertyFile: rendered, config.APIKeysFile: keys, config.RedisURLFile: []byte(redisURL),
	} {
		path := filepath.Join(directory, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
