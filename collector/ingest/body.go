package ingest

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// encoding is a body's content coding.
type encoding int

const (
	identity encoding = iota
	gzipped
	zstandard
)

// codings are the names of the content codings that are understood, in lower case.
var codings = map[string]encoding{"": identity, "identity": identity, "gzip": gzipped, "x-gzip": gzipped, "zstd": zstandard}

// refusal is an answer to a request whose body is not looked at any further.
type refusal struct {
	status  int
	message string
	// header and value are a header field of the answer; "" for none.
	header, value string
}

// Error returns the message to answer.
func (r *refusal) Error() string { return r.message }

func tooLarge(limit int64) *refusal {
	return &refusal{
		status:  http.StatusRequestEntityTooLarge,
		message: fmt.Sprintf("The request body must not be larger than %d bytes.", limit),
	}
}

// compressedSlack is by how much a body may grow when it is compressed: frames and checksums around a content
// that cannot be made smaller.
const compressedSlack = 4 << 10

// The media types that a body may have. What is JSON anyway a browser sends as text/plain without asking beforehand.
var (
	jsonAlone  = []string{"application/json"}
	jsonOrText = []string{"application/json", "text/plain"}
)

// mediaTypes are those that bodies of the sender may have.
func (s *sender) mediaTypes() []string {
	if s.web != nil {
		return jsonOrText
	}
	return jsonAlone
}

// negotiate judges a request by its header: what it says the body is, and how long. Without media types it may say of which it
// is what it likes.
func negotiate(r *http.Request, limit int64, mediaTypes []string) (encoding, *refusal) {
	if len(mediaTypes) > 0 && !isText(r.Header["Content-Type"], mediaTypes) {
		return 0, &refusal{
			status: http.StatusUnsupportedMediaType, message: "The Content-Type must be " + strings.Join(mediaTypes, " or ") + " in UTF-8.",
		}
	}
	coding := identity
	if values := r.Header["Content-Encoding"]; len(values) > 0 {
		named, known := codings[strings.ToLower(strings.TrimSpace(values[0]))]
		if !known || len(values) > 1 {
			return 0, &refusal{
				status: http.StatusUnsupportedMediaType, message: "The Content-Encoding must be gzip or zstd, or absent.",
				header: "Accept-Encoding", value: "gzip, zstd",
			}
		}
		coding = named
	}
	if r.ContentLength > transferLimit(coding, limit) {
		return 0, tooLarge(limit)
	}
	return coding, nil
}

// transferLimit is how many bytes may be read for a body of which limit may remain when it is inflated.
func transferLimit(coding encoding, limit int64) int64 {
	if coding == identity {
		return limit
	}
	return limit + compressedSlack
}

// isText says whether the values of the Content-Type field mean one of the media types, in UTF-8.
func isText(values, mediaTypes []string) bool {
	if len(values) != 1 {
		return false
	}
	if values[0] == "application/json" {
		return true // what nearly everyone sends
	}
	kind, parameters, err := mime.ParseMediaType(values[0])
	if err != nil || !slices.Contains(mediaTypes, kind) {
		return false
	}
	charset, given := parameters["charset"]
	return !given || strings.EqualFold(charset, "utf-8")
}

// bodies reads request bodies into buffers that are used again.
type bodies struct {
	buffers sync.Pool // of *buffer
	gzips   sync.Pool // of *gzip.Reader
	zstds   *zstd.Decoder
}

// maxZstdWindow is the largest window that a zstd frame may declare. It costs no memory of ours: inflated text is
// its own window.
const maxZstdWindow = 128 << 20

func newBodies() *bodies {
	// The options are constants and good. A decoder's output never exceeds the capacity it is given, and it holds
	// no window beside that.
	zstds, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxZstdWindow), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err)
	}
	return &bodies{
		buffers: sync.Pool{New: func() any { return new(buffer) }},
		gzips:   sync.Pool{New: func() any { return new(gzip.Reader) }},
		zstds:   zstds,
	}
}

// buffer holds a request's body, and afterwards its answer.
type buffer struct {
	bytes []byte
	// used is up to where something was written in it before bytes was cut short.
	used int
	// source is where the body is read from.
	source transfer
}

// reuse empties the buffer.
func (b *buffer) reuse() []byte {
	b.used = max(b.used, len(b.bytes))
	return b.bytes[:0]
}

// maxTrustedBytes is for how much of a body a buffer is made on the word of its Content-Length alone.
const maxTrustedBytes = 8 << 10

// maxPooledBytes bounds the buffers that are kept between requests.
const maxPooledBytes = 256 << 10

func (b *bodies) buffer() *buffer { return b.buffers.Get().(*buffer) }

// release gives a buffer back, without what it held of a person.
func (b *bodies) release(used *buffer) {
	if cap(used.bytes) > maxPooledBytes {
		used.bytes = nil // a pooled decompressor goes on pointing at the buffer's source, and so at the buffer
		return
	}
	used.bytes = used.reuse()
	clear(used.bytes[:min(used.used, cap(used.bytes))])
	used.used = 0
	b.buffers.Put(used)
}

// read returns the request's body, inflated, in a buffer to be released. Its error is a [*refusal].
func (b *bodies) read(r *http.Request, coding encoding, limit int64) (*buffer, error) {
	into := b.buffer()
	source := &into.source
	*source = transfer{body: r.Body, left: transferLimit(coding, limit)}
	if r.ContentLength > 0 {
		// And one byte to see that there is no more. What a caller announces costs nothing until it comes.
		into.bytes = slices.Grow(into.bytes, int(min(r.ContentLength, maxTrustedBytes))+1)
	}
	var err error
	switch coding {
	case gzipped:
		err = b.gunzip(into, source, limit)
	case zstandard:
		err = b.unzstd(into, source, limit)
	default:
		err = into.fill(source, limit)
	}
	failure := source.failure
	*source = transfer{}
	if err == nil {
		return into, nil
	}
	b.release(into)
	return nil, refuse(err, failure, limit)
}

// errTooLarge says that a body is larger than its limit.
var errTooLarge = errors.New("body too large")

// errMalformed says that a body is not in the coding that it claims.
var errMalformed = errors.New("body malformed")

// refuse words an error of reading; failure is the transfer's own, which a decoder may have passed on as one of
// its own.
func refuse(err, failure error, limit int64) *refusal {
	switch {
	case errors.Is(failure, os.ErrDeadlineExceeded):
		return &refusal{
			status: http.StatusRequestTimeout, message: "The request body did not arrive in time.",
			header: "Connection", value: "close", // the rest of the body may still come
		}
	case errors.Is(err, errTooLarge), errors.Is(failure, errTooLarge):
		return tooLarge(limit)
	case failure == nil && errors.Is(err, errMalformed):
		return &refusal{status: http.StatusBadRequest, message: "The request body is not in the encoding that Content-Encoding names."}
	default:
		return &refusal{status: http.StatusBadRequest, message: "The request body did not arrive in full."}
	}
}

// transfer reads a body as it is sent, up to a limit, and remembers why it ended before its end.
type transfer struct {
	body    io.Reader
	left    int64
	failure error
}

// Read reads at most what is left, and fails with errTooLarge where there is more.
func (t *transfer) Read(p []byte) (int, error) {
	if t.failure != nil {
		return 0, t.failure
	}
	if int64(len(p)) > t.left+1 {
		p = p[:t.left+1]
	}
	n, err := t.body.Read(p)
	if int64(n) > t.left {
		n, err = int(t.left), errTooLarge
	}
	t.left -= int64(n)
	if err != nil && err != io.EOF {
		t.failure = err
	}
	return n, err
}

// fill reads source to its end. It fails with errTooLarge as soon as there is more than limit.
func (b *buffer) fill(source io.Reader, limit int64) error {
	for {
		if len(b.bytes) == cap(b.bytes) {
			b.bytes = slices.Grow(b.bytes, max(1024, len(b.bytes)))
		}
		n, err := source.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		switch {
		case int64(len(b.bytes)) > limit:
			return errTooLarge
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

func (b *bodies) gunzip(into *buffer, source *transfer, limit int64) error {
	reader := b.gzips.Get().(*gzip.Reader)
	defer b.gzips.Put(reader)
	if err := reader.Reset(source); err != nil {
		return errMalformed
	}
	switch err := into.fill(reader, limit); {
	case err == nil, errors.Is(err, errTooLarge):
		return err
	default:
		return errMalformed
	}
}

func (b *bodies) unzstd(into *buffer, source *transfer, limit int64) error {
	sent := b.buffer()
	defer b.release(sent)
	if err := sent.fill(source, transferLimit(zstandard, limit)); err != nil {
		return err
	}
	into.bytes = slices.Grow(into.bytes[:0], int(limit))
	inflated, err := b.zstds.DecodeAll(sent.bytes, into.bytes[:0:limit])
	if inflated != nil {
		into.bytes = inflated
	}
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return errTooLarge
	case err != nil:
		return errMalformed
	}
	return nil
}
