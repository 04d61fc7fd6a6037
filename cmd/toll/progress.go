package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/engine"
)

// progress is one line on the standard error, if that is a terminal. It is
// written between visits only: drawing costs CPU.
type progress struct{ w io.Writer }

func newProgress(w io.Writer, quiet bool) *progress {
	if quiet || !isTerminal(w) {
		return &progress{}
	}
	return &progress{w}
}

const clearLine = "\r\x1b[K"

func (p *progress) show(s engine.Progress) {
	if p.w == nil {
		return
	}
	const cells = 24
	done := 0
	if s.Total > 0 {
		done = min(cells, int(cells*s.Elapsed/s.Total))
	}
	left := time.Duration(max(0, s.Total-s.Elapsed) * float64(time.Second)).Round(time.Second)
	bar := strings.Repeat("█", done) + strings.Repeat("░", cells-done)
	if s.Rounds > 0 {
		fmt.Fprintf(p.w, "%s[%s] sweep %d, round %d of %d: %d pairs at once, %s · at most %s left", clearLine, bar,
			s.Sweep+1, s.Round+1, s.Rounds, s.Pairs, s.Cell.Load, left)
		return
	}
	fmt.Fprintf(p.w, "%s[%s] round %d, %d of %d: %s from %s, %s · at most %s left", clearLine,
		bar, s.Round+1, s.Visit+1, s.Visits,
		nameOf(s.Cell), s.Cell.From, s.Cell.Load, left)
}

func (p *progress) clear() {
	if p.w != nil {
		fmt.Fprint(p.w, clearLine)
	}
}
