package main

import "strings"

// kind is what a token is.
type kind int

const (
	word   kind = iota // a keyword or a name
	name               // a name in quotes
	text               // a text in quotes
	symbol             // anything else, a character at a time
)

type token struct {
	kind kind
	// value is without its quotes.
	value string
	// begin and end are where it stands in the statement, in bytes.
	begin, end int
}

// is says whether a token is a keyword or a symbol.
func (t token) is(value string) bool {
	return (t.kind == word || t.kind == symbol) && strings.EqualFold(t.value, value)
}

// tokensOf takes a statement apart, without comments.
func tokensOf(sql string) []token {
	var found []token
	for i := 0; i < len(sql); {
		end := tokenEnd(sql, i)
		switch first := sql[i]; {
		case strings.ContainsRune(" \t\r\n\f", rune(first)) || isComment(sql[i:]):
		case first == '\'':
			found = append(found, token{text, unquote(sql[i:end]), i, end})
		case first == '`' || first == '"':
			found = append(found, token{name, unquote(sql[i:end]), i, end})
		case isWord(first):
			found = append(found, token{word, sql[i:end], i, end})
		default:
			found = append(found, token{symbol, sql[i:end], i, end})
		}
		i = end
	}
	return found
}

func isComment(sql string) bool { return strings.HasPrefix(sql, "--") || strings.HasPrefix(sql, "/*") }

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// tokenEnd is where the token that begins at i ends.
func tokenEnd(sql string, i int) int {
	switch first := sql[i]; {
	case strings.HasPrefix(sql[i:], "--"):
		return behind(sql, i, "\n")
	case strings.HasPrefix(sql[i:], "/*"):
		return behind(sql, i, "*/")
	case first == '\'' || first == '`' || first == '"':
		for j := i + 1; j < len(sql); j++ {
			switch {
			case sql[j] == '\\' || sql[j] == first && j+1 < len(sql) && sql[j+1] == first:
				j++
			case sql[j] == first:
				return j + 1
			}
		}
		return len(sql)
	case isWord(first):
		for i < len(sql) && isWord(sql[i]) {
			i++
		}
		return i
	default:
		return i + 1
	}
}

func behind(sql string, i int, mark string) int {
	if at := strings.Index(sql[i:], mark); at >= 0 {
		return i + at + len(mark)
	}
	return len(sql)
}

// unquote is a token's value without its quotes.
func unquote(quoted string) string {
	inner, quote := quoted[1:max(1, len(quoted)-1)], quoted[0]
	var out strings.Builder
	for i := 0; i < len(inner); i++ {
		if i+1 < len(inner) && (inner[i] == '\\' || inner[i] == quote && inner[i+1] == quote) {
			i++
		}
		out.WriteByte(inner[i])
	}
	return out.String()
}

// parser reads tokens one after the other.
type parser struct {
	tokens []token
	at     int
}

func (p *parser) peek() token {
	if p.at < len(p.tokens) {
		return p.tokens[p.at]
	}
	return token{kind: symbol}
}

func (p *parser) next() token {
	found := p.peek()
	p.at++
	return found
}

func (p *parser) ended() bool { return p.at >= len(p.tokens) || p.peek().is(";") }

// accept goes past keywords where all of them come next.
func (p *parser) accept(keywords ...string) bool {
	for i, keyword := range keywords {
		if p.at+i >= len(p.tokens) || !p.tokens[p.at+i].is(keyword) {
			return false
		}
	}
	p.at += len(keywords)
	return true
}

// object is a table by its full name; "*" stands for all.
type object struct{ database, table string }

// object reads [database.]table, where either may be *.
func (p *parser) object(database string) object {
	first := p.next().value
	if !p.accept(".") {
		return object{database, first}
	}
	return object{first, p.next().value}
}

// names reads names with commas between them.
func (p *parser) names() []string {
	names := []string{p.next().value}
	for p.accept(",") {
		names = append(names, p.next().value)
	}
	return names
}

// hereOnly is a statement about tables without ON CLUSTER name: the engine knows no statements that are for several servers.
func hereOnly(sql string) string {
	tokens := tokensOf(sql[:min(len(sql), 1024)])
	if len(tokens) == 0 || !tokens[0].is("CREATE") && !tokens[0].is("ALTER") && !tokens[0].is("DROP") {
		return sql
	}
	for i := 1; i+2 < len(tokens); i++ {
		if tokens[i].is("ON") && tokens[i+1].is("CLUSTER") {
			return sql[:tokens[i].begin] + sql[tokens[i+2].end:]
		}
		if tokens[i].is("(") {
			break
		}
	}
	return sql
}
