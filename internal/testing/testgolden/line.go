package testgolden

import (
	"slices"
	"strings"
)

// HasLine reports whether one of the text's lines is the given one.
func HasLine(text, line string) bool { return slices.Contains(strings.Split(text, "\n"), line) }
