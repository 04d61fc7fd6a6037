package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

// parseOne parses a word of a closed list. The error names the list.
func parseOne[T any](word string, parse func(string) (T, error)) (T, error) {
	v, err := parse(word)
	if err != nil {
		return v, usage(err, "") // the error has its hint
	}
	return v, nil
}

// parseAll parses words of a closed list. Repeated words count once. The error names all unknown
// words.
func parseAll[T comparable](words []string, parse func(string) (T, error)) ([]T, error) {
	var out []T
	var unknown *suggest.UnknownError
	for _, w := range words {
		v, err := parse(w)
		var u *suggest.UnknownError
		switch {
		case errors.As(err, &u) && unknown == nil:
			unknown = u
		case errors.As(err, &u):
			if !slices.Contains(unknown.Words, w) {
				unknown.Words = append(unknown.Words, u.Words...)
			}
		case err != nil:
			return nil, usage(err, "") // the error has its hint
		case !slices.Contains(out, v):
			out = append(out, v)
		}
	}
	if unknown != nil {
		return nil, usage(unknown, "")
	}
	return out, nil
}

// allModes is the word for every mode.
const allModes = "all"

// parseModes parses modes. "all" means those of the backends called on.
func parseModes(words, on []string) ([]mode.Name, error) {
	if slices.Contains(words, allModes) {
		return modesOn(on), nil
	}
	return parseAll(words, mode.ParseName)
}

// tuneWords lists the tunes for help texts.
var tuneWords = strings.Join(mode.Forms(), ", ")

func parseWire(s string) (sample.Wire, error) { return parseOne(s, lab.ParseWire) }

// closed returns a parser for a closed list of words.
func closed(what string, known ...string) func(string) (string, error) {
	return func(s string) (string, error) { return suggest.Parse(what, s, known) }
}

var parseLoad = closed("load", loadNames...)
