package clickhouse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// longestField is how many bytes ClickHouse takes of a field of a form: its http_max_field_value_size, unless somebody sets that. Of
// fields it takes a thousand (http_max_fields; a million before 26.4), which no statement has.
const longestField = 128 << 10

// statement is the request of a statement that inserts no rows of ours. Parameters are what visitors and those who ask have
// chosen: they stand in the body, as fields of a form, and not in the URL, which servers on the way write into their logs, and bound. A
// statement without parameters is the body itself, of any length.
func (c *Client) statement(ctx context.Context, query Query) (*http.Request, error) {
	values, err := c.values(query)
	if err != nil {
		return nil, err
	}
	if len(query.Parameters) == 0 {
		return c.request(ctx, values, strings.NewReader(query.SQL))
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	if err := addField(form, "query", query.SQL); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(query.Parameters)) {
		text, err := parameterText(query.Parameters[name])
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", name, err)
		}
		if err := addField(form, "param_"+name, text); err != nil {
			return nil, err
		}
	}
	_ = form.Close() // a buffer takes everything
	request, err := c.request(ctx, values, &body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", form.FormDataContentType())
	return request, nil
}

// addField adds a field to a form, which writes to a buffer.
func addField(form *multipart.Writer, name, text string) error {
	if len(text) > longestField {
		return &Problem{Kind: Other, Message: fmt.Sprintf("the field %s has more than %d bytes", name, longestField)}
	}
	return form.WriteField(name, text)
}

// request is one with a body, by the client's user.
func (c *Client) request(ctx context.Context, values url.Values, body io.Reader) (*http.Request, error) {
	to := *c.address
	to.RawQuery = values.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), body)
	if err != nil {
		return nil, &Problem{Kind: Other, Message: "the request cannot be made"}
	}
	if c.user != "" {
		request.Header.Set("X-ClickHouse-User", c.user)
		request.Header.Set("X-ClickHouse-Key", c.password)
	}
	return request, nil
}

// values are what stands in the URL of every statement: the database and settings.
func (c *Client) values(query Query) (url.Values, error) {
	values := url.Values{}
	if c.database != "" {
		values.Set("database", c.database)
	}
	for _, settings := range []Settings{c.settings, query.Settings} {
		for name, value := range settings {
			text, err := settingText(value)
			if err != nil {
				return nil, fmt.Errorf("setting %s: %w", name, err)
			}
			values.Set(name, text)
		}
	}
	return values, nil
}

func settingText(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case bool:
		return map[bool]string{false: "0", true: "1"}[v], nil
	case int:
		return strconv.Itoa(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case uint64:
		return strconv.FormatUint(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	default:
		return "", errors.New("it must be a text, a number or a boolean")
	}
}
