package main

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>

// The library comes without a header: these are its functions that are used. It is opened when the program runs, so that
// the program is built and its tests are compiled without it.
typedef struct chdb_connection_ * chdb_connection;
typedef struct chdb_result_ chdb_result;

typedef struct {
	chdb_connection * (*connect)(int, char **);
	void (*close_conn)(chdb_connection *);
	chdb_result * (*query)(chdb_connection, const char *, size_t, const char *, size_t,
		const char * const *, const size_t *, const char * const *, const size_t *, size_t);
	char * (*buffer)(chdb_result *);
	size_t (*length)(chdb_result *);
	const char * (*error)(chdb_result *);
	unsigned long long (*rows_read)(chdb_result *);
	unsigned long long (*rows_written)(chdb_result *);
	void (*destroy)(chdb_result *);
} library;

static const char * library_open(library * l, const char * path) {
	void * handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) return dlerror();
	if (!(l->connect = dlsym(handle, "chdb_connect"))
		|| !(l->close_conn = dlsym(handle, "chdb_close_conn"))
		|| !(l->query = dlsym(handle, "chdb_query_with_params_n"))
		|| !(l->buffer = dlsym(handle, "chdb_result_buffer"))
		|| !(l->length = dlsym(handle, "chdb_result_length"))
		|| !(l->error = dlsym(handle, "chdb_result_error"))
		|| !(l->rows_read = dlsym(handle, "chdb_result_storage_rows_read"))
		|| !(l->rows_written = dlsym(handle, "chdb_result_rows_written"))
		|| !(l->destroy = dlsym(handle, "chdb_destroy_query_result"))) return dlerror();
	void (*handlers)(int) = dlsym(handle, "chdb_set_signal_handlers_enabled");
	if (handlers) handlers(0); // signals are Go's
	return NULL;
}
static chdb_connection * library_connect(library * l, int n, char ** v) { return l->connect(n, v); }
static void library_close(library * l, chdb_connection * c) { l->close_conn(c); }
static chdb_result * library_query(library * l, chdb_connection * c, const char * q, size_t ql, const char * f, size_t fl,
	char ** names, size_t * nl, char ** values, size_t * vl, size_t n) {
	return l->query(*c, q, ql, f, fl, (const char * const *)names, nl, (const char * const *)values, vl, n);
}
static char * library_buffer(library * l, chdb_result * r) { return l->buffer(r); }
static size_t library_length(library * l, chdb_result * r) { return l->length(r); }
static const char * library_error(library * l, chdb_result * r) { return l->error(r); }
static unsigned long long library_rows_read(library * l, chdb_result * r) { return l->rows_read(r); }
static unsigned long long library_rows_written(library * l, chdb_result * r) { return l->rows_written(r); }
static void library_destroy(library * l, chdb_result * r) { l->destroy(r); }
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// Engine is ClickHouse's engine in this process, on one data directory. Its connections run statements side by side.
type Engine struct {
	library   *C.library
	arguments []string
	// first keeps the engine running while nobody else is connected.
	first *Connection
}

// Connection is a session of an engine: its database and settings are its own. It runs one statement at a time.
type Connection struct {
	engine *Engine
	handle *C.chdb_connection
}

// Result is what a statement answers.
type Result struct {
	Body                  []byte
	RowsRead, RowsWritten uint64
}

// OpenEngine starts the engine of a libchdb.so with a ClickHouse configuration.
func OpenEngine(library, configuration, data string) (*Engine, error) {
	path := C.CString(library)
	defer C.free(unsafe.Pointer(path))
	e := &Engine{
		library:   (*C.library)(C.calloc(1, C.sizeof_library)),
		arguments: []string{"clickhouse", "--path=" + data, "--config-file=" + configuration},
	}
	if problem := C.library_open(e.library, path); problem != nil {
		return nil, fmt.Errorf("%s cannot be loaded: %s", library, C.GoString(problem))
	}
	var err error
	e.first, err = e.Connect()
	return e, err
}

// Close ends the engine; all other connections must be closed.
func (e *Engine) Close() { e.first.Close() }

// Connect opens a session.
func (e *Engine) Connect() (*Connection, error) {
	arguments := make([]*C.char, len(e.arguments))
	for i, argument := range e.arguments {
		arguments[i] = C.CString(argument)
		defer C.free(unsafe.Pointer(arguments[i]))
	}
	handle := C.library_connect(e.library, C.int(len(arguments)), &arguments[0])
	if handle == nil {
		return nil, errors.New("the engine takes no connection; is its data directory in use by another process?")
	}
	return &Connection{e, handle}, nil
}

// Close ends the session.
func (c *Connection) Close() { C.library_close(c.engine.library, c.handle) }

// Query runs a statement. Its error is ClickHouse's text: "Code: 60. DB::Exception: …".
func (c *Connection) Query(sql, format string, parameters map[string]string) (Result, error) {
	l := c.engine.library
	names, values := newTexts(len(parameters)), newTexts(len(parameters))
	defer names.free()
	defer values.free()
	for name, value := range parameters {
		names.add(name)
		values.add(value)
	}
	text, output := C.CString(sql), C.CString(format)
	defer C.free(unsafe.Pointer(text))
	defer C.free(unsafe.Pointer(output))
	result := C.library_query(l, c.handle, text, C.size_t(len(sql)), output, C.size_t(len(format)),
		names.pointers, names.lengths, values.pointers, values.lengths, C.size_t(len(parameters)))
	if result == nil {
		return Result{}, errors.New("Code: 1002. DB::Exception: The engine gave no result. (UNKNOWN_EXCEPTION)")
	}
	defer C.library_destroy(l, result)
	if problem := C.library_error(l, result); problem != nil {
		return Result{}, errors.New(C.GoString(problem))
	}
	answer := Result{RowsRead: uint64(C.library_rows_read(l, result)), RowsWritten: uint64(C.library_rows_written(l, result))}
	if length := C.library_length(l, result); length > 0 {
		answer.Body = C.GoBytes(unsafe.Pointer(C.library_buffer(l, result)), C.int(length))
	}
	return answer, nil
}

// texts are strings as C takes them, with their lengths.
type texts struct {
	pointers **C.char
	lengths  *C.size_t
	count    int
	room     int
}

func newTexts(room int) *texts {
	return &texts{
		pointers: (**C.char)(C.calloc(C.size_t(room+1), C.size_t(unsafe.Sizeof(uintptr(0))))),
		lengths:  (*C.size_t)(C.calloc(C.size_t(room+1), C.sizeof_size_t)),
		room:     room + 1,
	}
}

func (t *texts) add(text string) {
	unsafe.Slice(t.pointers, t.room)[t.count] = C.CString(text)
	unsafe.Slice(t.lengths, t.room)[t.count] = C.size_t(len(text))
	t.count++
}

func (t *texts) free() {
	for _, pointer := range unsafe.Slice(t.pointers, t.count) {
		C.free(unsafe.Pointer(pointer))
	}
	C.free(unsafe.Pointer(t.pointers))
	C.free(unsafe.Pointer(t.lengths))
}
