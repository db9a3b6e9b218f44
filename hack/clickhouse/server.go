package main

import (
	"cmp"
	"compress/gzip"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Server answers ClickHouse's HTTP interface. Each request has a session of its own, so that requests run side by side and one's
// settings are not another's. What is different from a real server: an answer is sent when it is complete, statements of several
// requests share no session (session_id), ON CLUSTER is this server alone, blocks are not compressed (compress, decompress), and query_id() is another than the header's.
type Server struct {
	engine *Engine
	access *Access
	// spool is the folder in which rows wait while they are inserted.
	spool string
}

// notSettings are parameters in the URL that are no settings of the engine, beside param_….
var notSettings = map[string]bool{
	"query": true, "database": true, "default_format": true, "user": true, "password": true, "query_id": true, "wait_end_of_query": true,
	"cancel_http_readonly_queries_on_client_close": true, "buffer_size": true, "enable_http_compression": true, "send_progress_in_http_headers": true,
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/ping":
		_, _ = io.WriteString(w, "Ok.\n")
		return
	case r.URL.Path != "/":
		http.Error(w, "There is no handle "+r.URL.Path, http.StatusNotFound)
		return
	case r.Method == http.MethodGet && r.URL.RawQuery == "" && r.Header.Get("Authorization") == "":
		_, _ = io.WriteString(w, "Ok.\n")
		return
	}
	values := r.URL.Query()
	id := cmp.Or(values.Get("query_id"), rand.Text())
	w.Header().Set("X-ClickHouse-Query-Id", id)
	w.Header().Set("X-ClickHouse-Timezone", "UTC")
	w.Header().Set("X-ClickHouse-Server-Display-Name", "test")
	user, err := s.access.Authenticate(credentials(r))
	if err == nil {
		err = s.answer(w, r, user, values, id)
	}
	if err != nil {
		refuse(w, err)
	}
}

func credentials(r *http.Request) (user, password string) {
	if name := r.Header.Get("X-ClickHouse-User"); name != "" {
		return name, r.Header.Get("X-ClickHouse-Key")
	}
	if name, password, ok := r.BasicAuth(); ok {
		return name, password
	}
	return cmp.Or(r.URL.Query().Get("user"), "default"), r.URL.Query().Get("password")
}

// answer runs the statement of a request.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, user string, values url.Values, id string) error {
	if values.Get("compress") == "1" || values.Get("decompress") == "1" {
		return exception(48, "NOT_IMPLEMENTED", "Blocks are not compressed here")
	}
	if err := addForm(r, values); err != nil {
		return err
	}
	statement, err := s.statementOf(r, values.Get("query"))
	if err != nil {
		return err
	}
	defer statement.discard()
	database := cmp.Or(values.Get("database"), r.Header.Get("X-ClickHouse-Database"), "default")
	handled, err := s.access.Run(user, database, statement.sql)
	if err != nil {
		return err
	}
	format := cmp.Or(values.Get("default_format"), r.Header.Get("X-ClickHouse-Format"), "TabSeparated")
	var result Result
	if handled == nil {
		result, err = s.run(r.Context(), statement.text(), s.session(r, user, database, id), format, values)
	} else if *handled != "" {
		result, err = s.run(r.Context(), *handled, nil, format, nil)
	}
	if err != nil {
		return err
	}
	if found := formatClause.FindStringSubmatch(statement.sql); found != nil {
		format = found[1]
	}
	w.Header().Set("X-ClickHouse-Format", format)
	w.Header().Set("X-ClickHouse-Summary", fmt.Sprintf(`{"read_rows":"%d","written_rows":"%d"}`, result.RowsRead, result.RowsWritten))
	return send(w, r, values, result.Body)
}

func send(w http.ResponseWriter, r *http.Request, values url.Values, body []byte) error {
	if values.Get("enable_http_compression") != "1" || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		_, _ = w.Write(body) // whoever has gone misses nothing
		return nil
	}
	w.Header().Set("Content-Encoding", "gzip")
	zipped := gzip.NewWriter(w)
	_, _ = zipped.Write(body)
	_ = zipped.Close()
	return nil
}

// session are the statements that a request's session begins with.
func (s *Server) session(r *http.Request, user, database, id string) []string {
	values := r.URL.Query()
	begin := []string{"USE " + backquoted(database)}
	settings := s.access.Settings(user)
	for name := range values {
		if !notSettings[name] && !strings.HasPrefix(name, "param_") {
			settings[name] = values.Get(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		begin = append(begin, "SET "+backquoted(name)+" = "+quoted(settings[name]))
	}
	// By the comment the statement is found that has to be killed.
	begin = append(begin, "SET log_comment = "+quoted(id))
	if r.Method == http.MethodGet {
		begin = append(begin, "SET readonly = 2")
	}
	return begin
}

// run runs a statement in a session of its own. A statement that nobody waits for any more is killed, if it is one that only reads;
// others go on, as they do in ClickHouse.
func (s *Server) run(ctx context.Context, sql string, begin []string, format string, values url.Values) (Result, error) {
	connection, err := s.engine.Connect()
	if err != nil {
		return Result{}, err
	}
	defer connection.Close()
	for _, statement := range begin {
		if _, err := connection.Query(statement, "Null", nil); err != nil {
			return Result{}, err
		}
	}
	parameters := map[string]string{}
	for name := range values {
		if parameter, ok := strings.CutPrefix(name, "param_"); ok {
			parameters[parameter] = values.Get(name)
		}
	}
	if len(begin) > 0 && readsOnly(sql) {
		done := make(chan struct{})
		defer close(done)
		comment := begin[slices.IndexFunc(begin, func(s string) bool { return strings.HasPrefix(s, "SET log_comment = ") })]
		go s.killWhenLeft(ctx, done, strings.TrimPrefix(comment, "SET log_comment = "))
	}
	return connection.Query(s.access.Rewrite(hereOnly(sql)), format, parameters)
}

// killWhenLeft kills a statement when ctx ends before it is done. It is asked for again and again: the statement may not have begun.
func (s *Server) killWhenLeft(ctx context.Context, done <-chan struct{}, comment string) {
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	connection, err := s.engine.Connect()
	if err != nil {
		return
	}
	defer connection.Close()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		_, _ = connection.Query("KILL QUERY WHERE Settings['log_comment'] = "+comment+" ASYNC", "Null", nil)
		select {
		case <-done:
			return
		case <-ticker.C:
		}
	}
}

// statement is the text of a request, and where the rows that it inserts are.
type statement struct {
	sql string
	// rows is a file with rows in a format that the text ends with; "" where there are none.
	rows string
}

var (
	formatClause = regexp.MustCompile(`(?is)\sFORMAT\s+(\w+)\s*;?\s*$`)
	// insertHead is the beginning of a body that has statement and rows.
	insertHead = regexp.MustCompile(`(?is)^\s*INSERT\s+INTO\s[^;]*?\sFORMAT\s+\w+[ \t]*(\r?\n|$)`)
	// insertForm takes an INSERT apart: table and columns, settings, format.
	insertForm = regexp.MustCompile(`(?is)^(.*?)(\sSETTINGS\s.*?)?\s+(?:FORMAT\s+(\w+)|(VALUES))\s*;?\s*$`)
)

// statementOf reads a request. Rows are put into a file: in the text, the engine's client would take the end of a line for theirs.
func (s *Server) statementOf(r *http.Request, query string) (statement, error) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			return statement{}, exception(354, "ZLIB_INFLATE_FAILED", "The body is no gzip")
		}
		body = unzipped
	}
	content, err := io.ReadAll(body)
	if err != nil {
		return statement{}, exception(210, "NETWORK_ERROR", "The body breaks off")
	}
	if query == "" {
		head := insertHead.FindIndex(content)
		if head == nil || head[1] == len(content) {
			return statement{sql: string(content)}, nil
		}
		query, content = string(content[:head[1]]), content[head[1]:]
	}
	if len(content) == 0 {
		return statement{sql: query}, nil
	}
	if !insertForm.MatchString(query) {
		return statement{sql: query + "\n" + string(content)}, nil
	}
	file, err := os.CreateTemp(s.spool, "rows-")
	if err != nil {
		return statement{}, err
	}
	defer file.Close()
	_, err = file.Write(content)
	return statement{sql: query, rows: file.Name()}, err
}

// text is the statement as the engine runs it.
func (s statement) text() string {
	if s.rows == "" {
		return s.sql
	}
	parts := insertForm.FindStringSubmatch(s.sql)
	return parts[1] + " FROM INFILE " + quoted(s.rows) + " COMPRESSION 'none'" + parts[2] + " FORMAT " + cmp.Or(parts[3], "Values")
}

func (s statement) discard() {
	if s.rows != "" {
		_ = os.Remove(s.rows)
	}
}

func backquoted(name string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(name) + "`"
}

func quoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

// exception is an error in ClickHouse's words.
func exception(code int, name, message string) error {
	return fmt.Errorf("Code: %d. DB::Exception: %s. (%s)", code, message, name) //nolint:staticcheck // so ClickHouse writes them
}

var exceptionCode = regexp.MustCompile(`Code: (\d+)`)

// statusOf are the statuses of exceptions' codes; others are 500.
var statusOf = map[int]int{
	159: 408,                     // TIMEOUT_EXCEEDED
	192: 403, 193: 403, 516: 403, // UNKNOWN_USER, WRONG_PASSWORD, AUTHENTICATION_FAILED
	194: 401,                                                                                           // REQUIRED_PASSWORD
	497: 403,                                                                                           // ACCESS_DENIED
	62:  400, 6: 400, 26: 400, 27: 400, 36: 400, 38: 400, 41: 400, 53: 400, 69: 400, 72: 400, 457: 400, // what cannot be parsed
	46: 404, 47: 404, 50: 404, 56: 404, 60: 404, 73: 404, 81: 404, 115: 404, // what is not known
	48: 501, // NOT_IMPLEMENTED
}

func refuse(w http.ResponseWriter, err error) {
	code := 1002
	if found := exceptionCode.FindStringSubmatch(err.Error()); found != nil {
		code, _ = strconv.Atoi(found[1])
	}
	w.Header().Set("X-ClickHouse-Exception-Code", strconv.Itoa(code))
	w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	w.WriteHeader(cmp.Or(statusOf[code], http.StatusInternalServerError))
	_, _ = io.WriteString(w, strings.TrimSpace(err.Error())+"\n")
}
