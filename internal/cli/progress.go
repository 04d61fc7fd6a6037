package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/machine/exchange"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/live"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// progress prints the run's progress. It prints only between visits, because drawing costs CPU
// time. On a terminal it redraws one line; elsewhere it prints a line every beat seconds.
type progress struct {
	w     io.Writer // a terminal, or nil
	plain io.Writer // not a terminal; nil: w is used, or nothing is printed
	// nil: nothing was judged yet
	standings func() []analysis.Standing
	page      int     // of the ranking
	turned    float64 // when the page was turned, in s since the run's start
	beaten    float64 // when the last line of text was printed, in s since the run's start
}

// beat is the interval between lines of text, in seconds.
const beat = 10

func newProgress(w io.Writer, quiet bool) *progress {
	switch {
	case quiet:
		return &progress{}
	case drawable(w):
		return &progress{w: w}
	}
	return &progress{plain: w}
}

// drawable reports whether a line on w can be redrawn and is likely to be seen.
func drawable(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("TERM") != "dumb" && os.Getenv("CI") == ""
}

const clearLine = "\r\x1b[K"

func (p *progress) show(s engine.Progress) {
	if p.plain != nil && s.Elapsed >= p.beaten+beat && s.Elapsed < s.Total {
		p.beaten = s.Elapsed - math.Mod(s.Elapsed, beat)
		p.page++
		fmt.Fprintln(p.plain, live.Beat(stepOf(s), p.ranking(), p.page))
	}
	if p.w == nil {
		return
	}
	const pageTime = 2
	if s.Elapsed >= p.turned+pageTime {
		p.page, p.turned = p.page+1, s.Elapsed
	}
	fmt.Fprint(p.w, clearLine, live.Line(stepOf(s), p.ranking(), p.page, terminalWidth(p.w)))
}

func (p *progress) ranking() []analysis.Standing {
	if p.standings == nil {
		return nil
	}
	return p.standings()
}

func stepOf(s engine.Progress) live.Progress {
	return live.Progress{Next: next(s), Elapsed: s.Elapsed, Total: s.Total}
}

func next(s engine.Progress) string {
	if s.Rounds > 0 {
		return fmt.Sprintf("sweep %d, round %d of %d: %s at once, %s", s.Sweep+1, s.Round+1,
			s.Rounds, units.Plural(s.Pairs, "pair"), s.Cell.Load)
	}
	if s.Epoch {
		line := fmt.Sprintf("round %d, %d of %d: an epoch of %s", s.Round+1, s.Visit+1, s.Visits,
			s.Cell.Load)
		if s.Tracing != sample.Untraced {
			line += ", " + s.Tracing.Words()
		}
		return line
	}
	return fmt.Sprintf("round %d, %d of %d: %s from %s, %s", s.Round+1, s.Visit+1, s.Visits,
		analysis.RowName(s.Cell), s.Cell.From, s.Cell.Load)
}

type readProgress struct {
	*progress
	io.Reader
	read, size int64
	next       time.Time // earliest time of the next message
}

const (
	toldAfter = 500 * time.Millisecond
	toldEvery = 200 * time.Millisecond
)

// reading returns a reader that shows how much of r was read. A size of 0 or less is unknown.
// Without a terminal it returns r itself.
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
	return fmt.Sprintf("%d %% of %.0f MB", min(percent, percent*r.read/r.size),
		float64(r.size)/megabyte)
}

func (p *progress) judging(visits int) {
	const many = 20_000 // they take a second
	if p.w != nil && visits >= many {
		fmt.Fprintf(p.w, "%sjudging %d visits", clearLine, visits)
	}
}

func (p *progress) first(name string) {
	if p.w != nil {
		fmt.Fprint(p.w, clearLine, ansi.Truncate("trying "+name, terminalWidth(p.w)-1, "…"))
	}
}

func (p *progress) waitsFor(left time.Duration, c sample.Contention) {
	seconds := left.Round(time.Second).Seconds()
	text := fmt.Sprintf("waiting up to %.0f s for free CPUs (--busy: do not wait): ", seconds)
	if p.w != nil {
		fmt.Fprint(p.w, clearLine, ansi.Truncate(text+c.Busy(), terminalWidth(p.w)-1, "…"))
	}
	if p.plain != nil && seconds > 0 && math.Mod(seconds, beat) == 0 {
		fmt.Fprintln(p.plain, "toll: "+text+c.Words("keep"))
	}
}

func (p *progress) clear() {
	if p.w != nil {
		fmt.Fprint(p.w, clearLine)
	}
}

// sayWaiting prints messages about slow requests until done is called.
func sayWaiting(w io.Writer) (done func()) {
	clear := ""
	if drawable(w) {
		clear = clearLine
	}
	return exchange.Tell(func(line string) {
		sayAfter(w, clear, "toll: "+line)
	})
}

// sayNothing silences the messages of slow requests until done is called.
func sayNothing() (done func()) { return exchange.Tell(func(string) {}) }

// silentStop is how long a stopped run may take to end before it prints a message.
const silentStop = 300 * time.Millisecond

// sayStopping prints what a run waits for if it does not end soon after a signal: an engine needs
// time to remove containers. The caller calls done when the run has ended.
func (p *progress) sayStopping(ctx context.Context) (done func()) {
	if p.w == nil {
		return func() {}
	}
	ended := make(chan struct{})
	go func() {
		select {
		case <-ended:
			return
		case <-ctx.Done():
		}
		select {
		case <-ended:
		case <-time.After(silentStop):
			fmt.Fprintf(p.w, "%sstopping: removing what was built\n", clearLine)
		}
	}()
	return func() { close(ended) }
}
