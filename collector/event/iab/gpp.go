package iab

import (
	"errors"
	"fmt"
	"strings"
)

// The ids of sections that are read, apart from those of the United States that usLayouts has.
const (
	sectionTCFEU     = 2
	sectionTCFCanada = 5
	sectionUSPrivacy = 6
	// sectionUSNational is one of usLayouts.
	sectionUSNational = 7
)

// typeAndVersion are the letters with which a header begins: 3, which tells it from a TC string, and the platform's version, 1.
const typeAndVersion = "DB"

var errGPPStart = errors.New("it must begin with DB, which is Type 3 and Version 1")

// GPP is what a string of the Global Privacy Platform says: a section for each framework that it has a choice for.
type GPP struct {
	// Sections are the ids of all sections in the string, in ascending order. Of those that the platform has given no layout yet,
	// or has deprecated, nothing but the id is read.
	Sections []int
	// TCFEU is section 2, of IAB Europe's framework; nil where it is not there.
	TCFEU *TCF
	// TCFCanada is section 5, of IAB Canada's; nil where it is not there.
	TCFCanada *TCFCanada
	// USPrivacy is section 6, a US Privacy string that [ParseUSPrivacy] takes; empty where it is not there.
	USPrivacy string
	// US are the sections of the United States, 7 for all of them and 8 to 27 for single states, by their ids.
	US []USSection
}

// ParseGPP reads a string of the Global Privacy Platform, version 1: a header with the ids of its sections, and these, separated
// by tildes. A section that is not of its layout makes the string invalid. The error names the section and the field, and never
// repeats the string.
func ParseGPP(text string) (GPP, error) {
	g, err := parseGPP(text)
	if err != nil {
		return GPP{}, fmt.Errorf("GPP string: %w", err)
	}
	return g, nil
}

func parseGPP(text string) (GPP, error) {
	header, rest, more := strings.Cut(text, "~")
	count := 0
	if more {
		count = strings.Count(rest, "~") + 1
	}
	ids, err := parseGPPHeader(header, count)
	if err != nil {
		return GPP{}, fmt.Errorf("header: %w", err)
	}
	g := GPP{Sections: ids}
	for _, id := range ids {
		var section string
		section, rest, _ = strings.Cut(rest, "~")
		if section == "" {
			return GPP{}, fmt.Errorf("section %d must not be empty", id)
		}
		if err := g.addSection(id, section); err != nil {
			return GPP{}, fmt.Errorf("section %d: %w", id, err)
		}
	}
	return g, nil
}

// parseGPPHeader reads the ids of as many sections as there are.
func parseGPPHeader(text string, count int) ([]int, error) {
	if !strings.HasPrefix(text, typeAndVersion) {
		return nil, errGPPStart
	}
	r := newBitReader(text[len(typeAndVersion):])
	var ids []int
	for _, one := range r.fibonacciRanges("Sections") {
		if int(one.last)-int(one.first) >= count-len(ids) {
			r.fail("Sections must be as many as there are")
			break
		}
		for id := int(one.first); id <= int(one.last); id++ {
			ids = append(ids, id)
		}
	}
	if len(ids) != count {
		r.fail("Sections must be as many as there are")
	}
	return ids, r.err
}

func (g *GPP) addSection(id int, text string) error {
	switch id {
	case sectionTCFEU:
		t, err := parseTCF(text)
		g.TCFEU = &t
		return err
	case sectionTCFCanada:
		t, err := parseCanada(text)
		g.TCFCanada = t
		return err
	case sectionUSPrivacy:
		_, err := ParseUSPrivacy(text)
		g.USPrivacy = text
		return err
	}
	layout, ok := usLayouts[id]
	if !ok {
		return nil
	}
	section, err := layout.parse(id, text)
	g.US = append(g.US, section)
	return err
}
