package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/show"
)

// say prints a line for people. On a terminal it is broken at words where it is longer than that; a
// file or a pipe has it whole.
func say(w io.Writer, text string) { sayAfter(w, "", text) }

// sayAfter writes before and the line that say prints, in one write.
func sayAfter(w io.Writer, before, text string) {
	if isTerminal(w) {
		text = strings.Join(show.Wrap(text, terminalWidth(w)), "\n")
	}
	fmt.Fprintln(w, before+text)
}

// warn prints a warning on the standard error.
func warn(e env, text string) { say(e.stderr, "toll: warning: "+text) }
