package server

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
)

// plainHeader is what net/http writes between status and text when it answers by itself: to what is no proper request,
// such as a path with a wrong escape, which no handler sees.
const plainHeader = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

// longestStatus is how long the status line of such an answer is at most.
const longestStatus = 128

// Write turns answers of net/http's own into the JSON that errors have everywhere else. They come in one piece; a
// handler's answer has its Date behind the type, and is passed on as it is.
func (c *connection) Write(answer []byte) (int, error) {
	head := answer[:min(len(answer), longestStatus+len(plainHeader))]
	at := bytes.Index(head, []byte(plainHeader))
	if at < 0 || !bytes.HasPrefix(head, []byte("HTTP/1.1 ")) {
		return c.Conn.Write(answer)
	}
	text := bytes.TrimLeft(answer[at+len(plainHeader):], "0123456789 ")
	body, err := json.Marshal(message{string(text) + "."})
	if err != nil {
		return 0, fmt.Errorf("answer what is no request: %w", err)
	}
	_, err = fmt.Fprintf(c.Conn, "%s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", answer[:at], len(body), body)
	return len(answer), err
}
