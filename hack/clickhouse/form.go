package main

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
)

// What ClickHouse takes of a form unless its settings say otherwise: http_max_fields and http_max_field_value_size.
const (
	mostFields   = 1000
	longestField = 128 << 10
)

// addForm adds what stands in a body that is a form: a statement's text, behind what the URL has of it, and parameters. Other fields, as
// settings, count in the URL alone. Fields that are files would be tables, which are not emulated.
func addForm(r *http.Request, values url.Values) error {
	kind, header, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" {
		return nil
	}
	form := multipart.NewReader(r.Body, header["boundary"])
	for fields := 0; ; fields++ {
		field, err := form.NextRawPart()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return formException("No boundary line found")
		case fields == mostFields:
			return formException("Too many form fields")
		case field.FileName() != "":
			return exception(48, "NOT_IMPLEMENTED", "Tables are not sent along here")
		}
		content, err := io.ReadAll(io.LimitReader(field, longestField+1))
		if err != nil {
			return formException("No boundary line found")
		}
		if len(content) > longestField {
			return formException("Field value too long")
		}
		switch name := field.FormName(); {
		case name == "query":
			values.Set(name, values.Get(name)+string(content))
		case strings.HasPrefix(name, "param_"):
			values.Set(name, string(content))
		}
	}
}

// formException is what is wrong with a form, which ClickHouse has a library tell.
func formException(what string) error {
	return exception(1000, "POCO_EXCEPTION", "HTML Form Exception: "+what)
}
