package server_test

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/server"
)

func TestPathsAreRoutedAlikeHoweverTheyAreEscaped(t *testing.T) {
	router := server.NewRouter(server.NewObserver(slog.New(slog.DiscardHandler), prometheus.NewRegistry()))
	router.Get("/collect/{api_key}", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(server.PathParameter(r, "api_key")))
	})
	for name, test := range map[string]struct{ path, want string }{
		"without escapes":             {"/collect/abc", "abc"},
		"with an escaped key":         {"/collect/%61bc", "abc"},
		"with an escaped route":       {"/c%6Fllect/%61bc", "abc"},
		"with small hexadecimals":     {"/c%6fllect/abc", "abc"},
		"with an escaped slash":       {"/collect/a%2Fb", "a/b"},
		"with an escape that is kept": {"/collect/a%20b", "a b"},
		"with an escaped escape":      {"/collect/%2561", "%61"},
		"with a comma and an escape":  {"/collect/a,%62", "a,b"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := httptest.NewRecorder()
			router.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, test.path, nil))
			if answer.Code != http.StatusOK || answer.Body.String() != test.want {
				t.Errorf("got %d %q, want %q", answer.Code, answer.Body, test.want)
			}
		})
	}
}

func TestWhatIsNoRequestIsAnsweredInJSON(t *testing.T) {
	for name, test := range map[string]struct{ request, status, want string }{
		"a wrong escape":               {"GET /%zz/ HTTP/1.1\r\nHost: weir\r\n\r\n", "400 Bad Request", "Bad Request."},
		"a wrong escape in a route":    {"GET /collect/%zz HTTP/1.1\r\nHost: weir\r\n\r\n", "400 Bad Request", "Bad Request."},
		"no host":                      {"GET / HTTP/1.1\r\n\r\n", "400 Bad Request: missing required Host header", "Bad Request: missing required Host header."},
		"an unknown transfer encoding": {"POST / HTTP/1.1\r\nHost: weir\r\nTransfer-Encoding: x\r\n\r\n", "501 Not Implemented", "Unsupported transfer encoding."},
		"too long a header": {"GET /?" + strings.Repeat("a", 64<<10) + " HTTP/1.1\r\nHost: weir\r\n\r\n",
			"431 Request Header Fields Too Large", "Request Header Fields Too Large."},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, server.Options{Handler: http.NotFoundHandler()})
			body := `{"message":"` + test.want + `"}`
			want := fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", test.status, len(body), body)
			connection, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			go func() { _, _ = io.WriteString(connection, test.request) }() // which may be cut off by the answer
			got, _ := io.ReadAll(connection)                                // which may end in a reset, as not all of a request was read
			if string(got) != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestHowLongALineMayBe(t *testing.T) {
	const room = 96 << 10
	for name, test := range map[string]struct {
		limit, length int
		want          string
	}{
		"64 KiB where there is room":         {room, 64 << 10, "HTTP/1.1 204 "},
		"nearly all of the room is taken":    {room, room - 64, "HTTP/1.1 204 "},
		"more than the room is refused":      {room, room, "HTTP/1.1 431 "},
		"64 KiB are refused by usual limits": {0, 64 << 10, "HTTP/1.1 431 "},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, server.Options{MaxHeaderBytes: test.limit, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusNoContent)
			})})
			answer := exchange(t, r, "GET /?"+strings.Repeat("a", test.length)+" HTTP/1.1\r\nHost: weir\r\n\r\n")
			if !strings.HasPrefix(answer, test.want) {
				t.Errorf("got %q, want %q", answer, test.want)
			}
		})
	}
}
