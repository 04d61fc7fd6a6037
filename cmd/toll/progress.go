package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
)

// progress is one line on the standard error, if that is a terminal. It is
// written between visits only: drawing costs CPU.
type progress struct {
	w io.Writer
	// standings are the ratios that are known so far; nil: not judged yet.
	standings func() []standing
	page      int     // of the ranking
	turned    float64 // when that came, in s since the run's start
}

func newProgress(w io.Writer, quiet bool) *progress {
	if quiet || !isTerminal(w) {
		return &progress{}
	}
	return &progress{w: w}
}

const clearLine = "\r\x1b[K"

func (p *progress) show(s engine.Progress) {
	if p.w == nil {
		return
	}
	var ranking []standing
	if p.standings != nil {
		ranking = p.standings()
	}
	const pageTime = 2
	if s.Elapsed >= p.turned+pageTime {
		p.page, p.turned = p.page+1, s.Elapsed
	}
	fmt.Fprint(p.w, clearLine, progressLine(s, ranking, p.page, terminalWidth(p.w)))
}

// progressLine is what a line of so many columns says of a run: how long it goes on at
// most, and a page of the ratios so far or, as long as there are none, what comes next.
func progressLine(s engine.Progress, ranking []standing, page, columns int) string {
	const cells = 10
	done := 0
	if s.Total > 0 {
		done = min(cells, int(cells*s.Elapsed/s.Total))
	}
	line := fmt.Sprintf("[%s%s] %.0f of %.0f s · ", strings.Repeat("█", done), strings.Repeat("░", cells-done), s.Elapsed, max(s.Elapsed, s.Total))
	columns-- // a full line would wrap
	if pages := pagesOf(ranking, columns-ansi.StringWidth(line)); len(pages) > 0 {
		return line + pages[page%len(pages)]
	}
	return cut(line+next(s), columns)
}

// next says what a run does next.
func next(s engine.Progress) string {
	if s.Rounds > 0 {
		return fmt.Sprintf("sweep %d, round %d of %d: %d pairs at once, %s", s.Sweep+1, s.Round+1, s.Rounds, s.Pairs, s.Cell.Load)
	}
	if s.Epoch {
		return fmt.Sprintf("round %d, %d of %d: an epoch of %s", s.Round+1, s.Visit+1, s.Visits, s.Cell.Load)
	}
	return fmt.Sprintf("round %d, %d of %d: %s from %s, %s", s.Round+1, s.Visit+1, s.Visits, nameOf(s.Cell), s.Cell.From, s.Cell.Load)
}

// cut shortens text to so many columns.
func cut(s string, columns int) string {
	if ansi.StringWidth(s) <= columns {
		return s
	}
	r := []rune(s)
	for len(r) > 0 && ansi.StringWidth(string(r))+1 > columns {
		r = r[:len(r)-1]
	}
	return string(r) + "…"
}

// readProgress is a reader that tells how much it has read.
type readProgress struct {
	*progress
	io.Reader
	read, size int64
	next       time.Time // not before then
}

// How long reading may take before it is told of, and how often that is.
const (
	toldAfter = 500 * time.Millisecond
	toldEvery = 200 * time.Millisecond
)

// reading is r, which reports how much of size bytes it has read; 0: the size is
// unknown.
func (p *progress) reading(r io.Reader, size int64) io.Reader {
	if p.w == nil {
		return r
	}
	return &readProgress{progress: p, Reader: r, size: size, next: time.Now().Add(toldAfter)}
}

func (r *readProgress) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.read += int64(n)
	if now := time.Now(); now.After(r.next) {
		r.next = now.Add(toldEvery)
		fmt.Fprintf(r.w, "%sreading results, %s", clearLine, r.share())
	}
	return n, err
}

func (r *readProgress) share() string {
	const megabyte, percent = 1e6, 100
	if r.size <= 0 {
		return fmt.Sprintf("%.0f MB", float64(r.read)/megabyte)
	}
	return fmt.Sprintf("%d %% of %.0f MB", min(percent, percent*r.read/r.size), float64(r.size)/megabyte)
}

// judging tells that so many visits are being judged, if they are many.
func (p *progress) judging(visits int) {
	const many = 20_000 // a second's work
	if p.w != nil && visits >= many {
		fmt.Fprintf(p.w, "%sjudging %d visits", clearLine, visits)
	}
}

func (p *progress) clear() {
	if p.w != nil {
		fmt.Fprint(p.w, clearLine)
	}
}
