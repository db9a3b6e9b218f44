package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// eventsKey is the stream of the Property default/bench.
const eventsKey = "weir:{default/bench}:events"

func slogTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// connection speaks Redis's protocol without a library, whose cost would be measured too.
type connection struct {
	net.Conn
	reader *bufio.Reader
}

// connect dials redis://:password@host:port.
func connect(ctx context.Context, address string) (*connection, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("malformed Redis URL")
	}
	dialled, err := new(net.Dialer).DialContext(ctx, "tcp", parsed.Host)
	if err != nil {
		return nil, err
	}
	c := &connection{dialled, bufio.NewReaderSize(dialled, 64<<10)}
	password, _ := parsed.User.Password()
	_, err = c.do("AUTH", password)
	return c, err
}

// appendCommand appends a command as it is sent.
func appendCommand(b []byte, words ...string) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(words))
	for _, word := range words {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(word), word)
	}
	return b
}

// do sends a command and returns its reply: a text or a number.
func (c *connection) do(words ...string) (string, error) {
	if _, err := c.Write(appendCommand(nil, words...)); err != nil {
		return "", err
	}
	return c.reply()
}

func (c *connection) reply() (string, error) {
	line, err := c.reader.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimRight(line, "\r\n")
	switch line[0] {
	case '-':
		return "", errors.New(line[1:])
	case '$':
		size, err := strconv.Atoi(line[1:])
		if err != nil || size < 0 {
			return "", err
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(c.reader, text); err != nil {
			return "", err
		}
		return string(text[:size]), nil
	default:
		return line[1:], nil
	}
}

func (c *connection) number(words ...string) (int64, error) {
	reply, err := c.do(words...)
	if err != nil {
		return 0, err
	}
	if reply == "" {
		return 0, nil
	}
	return strconv.ParseInt(reply, 10, 64)
}

// info returns a field of INFO.
func (c *connection) info(section, field string) (float64, error) {
	text, err := c.do("INFO", section)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(line, field+":"); found {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("INFO %s has no %s", section, field)
}

// calls returns how often a function was called.
func (c *connection) calls() (int64, error) {
	text, err := c.do("INFO", "commandstats")
	if err != nil {
		return 0, err
	}
	_, behind, found := strings.Cut(text, "cmdstat_fcall:calls=")
	number, _, _ := strings.Cut(behind, ",")
	if !found {
		return 0, nil // none yet
	}
	return strconv.ParseInt(number, 10, 64)
}

// cpu returns the processor time that Redis has used, its background threads included.
func (c *connection) cpu() (time.Duration, error) {
	user, err := c.info("cpu", "used_cpu_user")
	if err != nil {
		return 0, err
	}
	system, err := c.info("cpu", "used_cpu_sys")
	return time.Duration((user + system) * float64(time.Second)), err
}

// xaddResult is what raw XADD came to.
type xaddResult struct {
	perSecond, redisMicros float64
}

// pipelineXADD appends entries of the size of the bench's for a while, hundreds in flight, into a stream of its own.
func (c *connection) pipelineXADD(entry string, duration time.Duration) (xaddResult, error) {
	const key, depth = "raw", 256
	command := appendCommand(nil, "XADD", key, "*", "e", entry)
	var batch []byte
	for range depth {
		batch = append(batch, command...)
	}
	before, err := c.cpu()
	if err != nil {
		return xaddResult{}, err
	}
	start, appended := time.Now(), 0
	for time.Since(start) < duration {
		if _, err := c.Write(batch); err != nil {
			return xaddResult{}, err
		}
		for range depth {
			if _, err := c.reply(); err != nil {
				return xaddResult{}, err
			}
		}
		appended += depth
	}
	took := time.Since(start)
	after, err := c.cpu()
	if err != nil {
		return xaddResult{}, err
	}
	if _, err := c.do("UNLINK", key); err != nil {
		return xaddResult{}, err
	}
	return xaddResult{
		perSecond: float64(appended) / took.Seconds(), redisMicros: float64((after - before).Microseconds()) / float64(appended),
	}, nil
}
