package cli

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/measure/program"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

func TestSaidWords(t *testing.T) {
	understood := map[string]func(string) error{
		"mode":      func(w string) error { _, err := mode.ParseName(w); return err },
		"placement": func(w string) error { _, err := mode.ParsePlacement(w); return err },
		"target":    func(w string) error { _, err := mode.ParseTarget(w); return err },
		"load":      func(w string) error { _, err := parseLoad(w); return err },
		"backend":   func(w string) error { _, err := parseBackend(w); return err },
		"recipe":    func(w string) error { _, err := program.FindRecipe(w); return err },
		"sweep":     func(w string) error { _, err := parseSweep([]string{w + "=1,2"}); return err },
		"tune":      func(w string) error { _, err := mode.ParseTunes(w); return unlessForm(err) },
		"format": func(w string) error {
			if _, ok := format.Find(w); !ok {
				return &suggest.UnknownError{What: "format", Words: []string{w},
					Known: formatNames()}
			}
			return nil
		},
	}
	for what, words := range suggest.Said {
		parse := understood[what]
		if parse == nil {
			t.Errorf("nothing reads a %s", what)
			continue
		}
		for word, to := range words {
			err := parse(word)
			if err == nil {
				t.Errorf("%s %q is a word itself", what, word)
				continue
			}
			if hint := hintOf(err, err); hint != "did you mean "+to+"?" {
				t.Errorf("%s %q: hint %q, want %s", what, word, hint, to)
			}
			if err := parse(to); err != nil {
				t.Errorf("%s %q stands for %q: %v", what, word, to, err)
			}
			if strings.ToLower(word) != word {
				t.Errorf("%q is not in lower case", word)
			}
		}
	}
}

func unlessForm(err error) error {
	if u := (*suggest.UnknownError)(nil); errors.As(err, &u) && u.What == "tune" {
		return err
	}
	return nil
}

func formatNames() (names []string) {
	for _, f := range format.All() {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return names
}
