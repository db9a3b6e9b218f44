package query

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bounds of a funnel's steps.
const (
	minSteps = 2
	maxSteps = 10
	// maxAlternatives is how many events can fill a step.
	maxAlternatives = 10
)

// errStepEscape says that a backslash in a step escapes nothing.
var errStepEscape = errors.New(`a backslash is written \\, a bar within a name \|`)

// step is what fills a step of a funnel: an event of one of the names.
type step []string

// String writes the step as callers do: its names with bars between them.
func (s step) String() string {
	escaped := make([]string, len(s))
	for i, name := range s {
		escaped[i] = strings.NewReplacer(`\`, `\\`, `|`, `\|`).Replace(name)
	}
	return strings.Join(escaped, "|")
}

// parseStep splits what String writes, and whatever white space is around the names. Names are not looked at.
func parseStep(text string) (step, error) {
	names := step{""}
	escaped := false
	for _, b := range []byte(text) {
		switch {
		case escaped && b != '\\' && b != '|':
			return nil, errStepEscape
		case !escaped && b == '\\':
			escaped = true
			continue
		case !escaped && b == '|':
			names = append(names, "")
			continue
		}
		names[len(names)-1] += string([]byte{b})
		escaped = false
	}
	if escaped {
		return nil, errStepEscape
	}
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return names, nil
}

// steps reads the steps of a funnel, the Property's aliases applied.
func (p *parameters) steps() []step {
	const name = "steps"
	texts := p.bounded(name, minSteps, maxSteps)
	steps := make([]step, len(texts))
	for i, text := range texts {
		steps[i] = p.step(fmt.Sprintf("%s.%d", name, i), text)
	}
	return steps
}

// step reads a step. A name that stands in it twice, maybe as an alias, is one.
func (p *parameters) step(field, text string) step {
	names, err := parseStep(text)
	switch {
	case err != nil:
		p.errs.Add(field, fmt.Sprintf("The %s field format is invalid: %s.", field, err))
		return nil
	case len(names) > maxAlternatives:
		p.errs.Add(field, fmt.Sprintf("The %s field must not have more than %d alternatives.", field, maxAlternatives))
		return nil
	case len(names) > 1 && slices.Contains(names, ""):
		p.errs.Add(field, fmt.Sprintf("The %s field must have an event's name on each side of a bar.", field))
		return nil
	}
	var distinct step
	for _, name := range names {
		before := len(p.errs)
		if name = p.eventName(field, name); !slices.Contains(distinct, name) {
			distinct = append(distinct, name)
		}
		if len(p.errs) > before {
			return nil // one error tells enough of a step
		}
	}
	return distinct
}
