package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// script is a connection that says what it is told to, some bytes at a time.
type script struct {
	net.Conn
	says   io.Reader
	step   int
	closed bool
}

func (s *script) Read(b []byte) (int, error)  { return s.says.Read(b[:min(len(b), s.step)]) }
func (s *script) Write(b []byte) (int, error) { return len(b), nil }
func (s *script) Close() error                { s.closed = true; return nil }
func (s *script) RemoteAddr() net.Addr        { return &net.TCPAddr{} }
func (s *script) SetDeadline(time.Time) error { return nil }

// SetReadDeadline and SetWriteDeadline do nothing: it answers at once.
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

func TestReplies(t *testing.T) {
	repeated := strings.Repeat
	tests := map[string]struct {
		says    string
		asked   string
		trusted bool
		want    error
	}{
		"a status":                               {says: "+OK\r\n"},
		"an error":                               {says: "-ERR no\r\n"},
		"a number":                               {says: ":-12\r\n"},
		"a string":                               {says: "$5\r\nhello\r\n"},
		"a string with ends of lines":            {says: "$6\r\na\r\n$9\n\r\n:1\r\n"},
		"an empty string":                        {says: "$0\r\n\r\n"},
		"no string":                              {says: "$-1\r\n"},
		"a list":                                 {says: "*2\r\n$1\r\na\r\n*1\r\n:1\r\n+OK\r\n"},
		"an empty list":                          {says: "*0\r\n+OK\r\n"},
		"no list":                                {says: "*-1\r\n"},
		"an empty list at the end of others":     {says: "*1\r\n*1\r\n*0\r\n" + repeated("+OK\r\n", 3)},
		"as many replies as there are":           {says: repeated("$1000\r\n"+repeated("x", 1000)+"\r\n", 3000)},
		"a string as long as may be":             {says: "$131072\r\n" + repeated("x", 131072) + "\r\n+OK\r\n"},
		"a longer one, of one's own Redis":       {says: "$2048000\r\n" + repeated("x", 2048000) + "\r\n+OK\r\n", trusted: true},
		"a string that is too long":              {says: "$131073\r\n", want: ErrReply},
		"one for which there is no memory":       {says: "$536870912000\r\n", want: ErrReply},
		"the same of one's own Redis":            {says: "$536870912000\r\n", trusted: true, want: ErrReply},
		"one of which no slice can be made":      {says: "$4611686018427387904\r\n", want: ErrReply},
		"the same of one's own Redis as well":    {says: "$4611686018427387904\r\n", trusted: true, want: ErrReply},
		"one of the longest length":              {says: "$9223372036854775807\r\n", want: ErrReply},
		"one beyond any number":                  {says: "$99999999999999999999\r\n", want: ErrReply},
		"a number of too many digits":            {says: ":" + repeated("0", 100) + "\r\n", want: ErrReply},
		"a negative length":                      {says: "$-2\r\n", want: ErrReply},
		"a list of negative length":              {says: "*-5\r\n", want: ErrReply},
		"a list that is too long":                {says: "*1073741824\r\n", want: ErrReply},
		"the same list of one's own Redis":       {says: "*1073741824\r\n", trusted: true, want: ErrReply},
		"strings that are too long together":     {says: "*9\r\n" + repeated("$130000\r\n"+repeated("x", 130000)+"\r\n", 9), want: ErrReply},
		"lists that are too long together":       {says: "*9\r\n" + repeated("*8000\r\n"+repeated(":1\r\n", 8000), 9), want: ErrReply},
		"lists in lists":                         {says: repeated("*1\r\n", 16) + ":1\r\n"},
		"too deep":                               {says: repeated("*1\r\n", 17) + ":1\r\n", want: ErrReply},
		"ten thousand deep":                      {says: repeated("*1\r\n", 10_000), trusted: true, want: ErrReply},
		"a line without an end":                  {says: "+" + repeated("x", 20_000), want: ErrReply},
		"a number without an end":                {says: ":" + repeated("1", 20_000), want: ErrReply},
		"a line that ends as in Unix":            {says: "+OK\n", want: ErrReply},
		"a carriage return within a line":        {says: "+O\rK\r\n", want: ErrReply},
		"an empty line":                          {says: "\r\n", want: ErrReply},
		"nothing but ends of lines":              {says: repeated("\n", 100), want: ErrReply},
		"a length that is none":                  {says: "$a\r\n", want: ErrReply},
		"no length":                              {says: "$\r\n", want: ErrReply},
		"a map of RESP 3":                        {says: "%1\r\n+a\r\n+b\r\n", want: ErrReply},
		"a set of RESP 3":                        {says: "~1\r\n+a\r\n", want: ErrReply},
		"a message of RESP 3":                    {says: ">1\r\n+a\r\n", want: ErrReply},
		"attributes of RESP 3":                   {says: "|1\r\n+a\r\n+b\r\n+OK\r\n", want: ErrReply},
		"nothing, of RESP 3":                     {says: "_\r\n", want: ErrReply},
		"a large number of RESP 3":               {says: "(123\r\n", want: ErrReply},
		"an error as long as one likes":          {says: "!5\r\nERR a\r\n", want: ErrReply},
		"a string of unknown length":             {says: "$?\r\n;4\r\nabcd\r\n;0\r\n", want: ErrReply},
		"HTTP":                                   {says: "HTTP/1.1 400 Bad Request\r\n\r\n", want: ErrReply},
		"a banner":                               {says: "220 mail.example.com secret\r\n", want: ErrReply},
		"TLS":                                    {says: "\x15\x03\x01\x00\x02\x02\x0a", want: ErrReply},
		"a list of nodes":                        {asked: "*2\r\n$7\r\ncluster\r\n$5\r\nslots\r\n", says: "*1\r\n$60000\r\n" + repeated("x", 60000) + "\r\n+OK\r\n"},
		"a list of too many nodes":               {asked: "*2\r\n$7\r\ncluster\r\n$5\r\nslots\r\n", says: "*1\r\n$70000\r\n", want: ErrReply},
		"a long answer after the list of nodes":  {asked: "*2\r\n$7\r\ncluster\r\n$5\r\nslots\r\n", says: "*0\r\n$70000\r\n" + repeated("x", 70000) + "\r\n"},
		"a longer list of nodes of one's own":    {asked: "*2\r\n$7\r\ncluster\r\n$5\r\nslots\r\n", trusted: true, says: "$70000\r\n" + repeated("x", 70000) + "\r\n"},
		"a list whose elements would not fit in": {says: "*65537\r\n", want: ErrReply},
	}
	for name, tt := range tests {
		for _, step := range []int{1, 7, 64 << 10} {
			t.Run(fmt.Sprintf("%s, %d bytes at a time", name, step), func(t *testing.T) {
				server := &script{says: strings.NewReader(tt.says), step: step}
				r := newReplies(server, !tt.trusted)
				if _, err := r.Write([]byte(tt.asked)); err != nil {
					t.Fatal(err)
				}
				read, err := io.ReadAll(r)
				if !errors.Is(err, tt.want) || server.closed != (tt.want != nil) {
					t.Errorf("error = %v, closed = %t; want %v", err, server.closed, tt.want)
				}
				if tt.want == nil && (string(read) != tt.says || r.left != r.limit || r.kind != 0 || len(r.pending) > 0) {
					t.Errorf("%d bytes of %d were read, %d of %d are left", len(read), len(tt.says), r.left, r.limit)
				}
			})
		}
	}
}

// FuzzReplies has the Redis library read, as it would in the operator, what any server may say.
func FuzzReplies(f *testing.F) {
	ctx := context.Background()
	commands := []func() redis.Cmder{
		func() redis.Cmder { return redis.NewCmd(ctx, "any") },
		func() redis.Cmder { return redis.NewStatusCmd(ctx, "any") },
		func() redis.Cmder { return redis.NewStringCmd(ctx, "any") },
		func() redis.Cmder { return redis.NewStringSliceCmd(ctx, "any") },
		func() redis.Cmder { return redis.NewIntCmd(ctx, "any") },
		func() redis.Cmder { return redis.NewFunctionListCmd(ctx, "any") },
		func() redis.Cmder { return redis.NewClusterSlotsCmd(ctx, "any") },
		func() redis.Cmder { return redis.NewCommandsInfoCmd(ctx, "any") },
		func() redis.Cmder { return redis.NewMapStringStringSliceCmd(ctx, "any") },
		func() redis.Cmder { return redis.NewScanCmd(ctx, nil, "any") },
	}
	for _, says := range []string{
		"+PONG\r\n*0\r\n", "$-1\r\n", "*2\r\n$1\r\na\r\n$1\r\nb\r\n", "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n",
		"*1\r\n*6\r\n+get\r\n:2\r\n*1\r\n+readonly\r\n:1\r\n:1\r\n:1\r\n", "-MOVED 1 127.0.0.1:1\r\n", "-ASK 1 :1\r\n", "-ERR x\r\n:1\r\n",
		"*1\r\n*6\r\n$12\r\nlibrary_name\r\n$4\r\nweir\r\n$6\r\nengine\r\n$3\r\nLUA\r\n$9\r\nfunctions\r\n*0\r\n", "$4611686018427387904\r\n", "*1073741824\r\n",
	} {
		for i := range commands {
			f.Add(uint8(i), []byte(says))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, says []byte) {
		const hello = "*0\r\n"
		server := &script{says: io.MultiReader(strings.NewReader(hello), bytes.NewReader(says)), step: 64}
		client := redis.NewClient(&redis.Options{
			Addr: "127.0.0.1:1", Protocol: 2, MaxRetries: -1, DialerRetries: 1, DisableIdentity: true, PoolSize: 1, PipelinePoolSize: -1,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			Dialer:                   func(context.Context, string, string) (net.Conn, error) { return newReplies(server, true), nil },
		})
		err := client.Process(t.Context(), commands[int(which)%len(commands)]())
		if err != nil && Explain(err) == nil {
			t.Errorf("%v has no explanation", err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
}
