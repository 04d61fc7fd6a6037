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

// reading is r, which tells how much of size bytes it has read; 0: of nobody knows
// how many.
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
