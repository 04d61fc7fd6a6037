package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/show/format"
)

// say prints a line for people. On a terminal it is broken between words if it is too long. Files
// and pipes get it whole.
func say(w io.Writer, text string) { sayAfter(w, "", text) }

func sayAfter(w io.Writer, before, text string) {
	if isTerminal(w) {
		text = strings.Join(format.Wrap(text, terminalWidth(w)), "\n")
	}
	fmt.Fprintln(w, before+text)
}

func warn(e env, text string) { say(e.stderr, "toll: warning: "+text) }
