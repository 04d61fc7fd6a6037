package sample

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
)

// Limits for hostile files.
const (
	maxLine   = 1 << 20
	maxCells  = 10_000
	maxVisits = 1_000_000
	maxPairs  = 8_000_000 // of 88 bytes each: five sweeps of MaxNodes nodes
	maxCPUs   = 4096
	maxRate   = 1e15
)

// line has exactly one member set.
type line struct {
	Header *Header `json:"header,omitempty"`
	Visit  *Visit  `json:"visit,omitempty"`
	Change *Change `json:"change,omitempty"`
	Step   *Step   `json:"step,omitempty"`
	End    *End    `json:"end,omitempty"`
}

// Writer writes a results file unbuffered, so that a later failure loses nothing. After a failed
// write, all methods return its error. Not for concurrent use.
type Writer struct {
	w   io.Writer
	err error
}

// NewWriter returns a Writer on w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

func (w *Writer) write(l line) error {
	if w.err != nil {
		return w.err
	}
	b, err := json.Marshal(l)
	if err == nil && len(b) > maxLine { // Read would refuse the whole file
		err = fmt.Errorf("a record is %w", errTooLong)
	}
	if err == nil {
		_, err = w.w.Write(append(b, '\n'))
	}
	if err != nil {
		w.err = fmt.Errorf("write results: %w", err)
	}
	return w.err
}

// Header writes h, with the current schema, as the first record.
func (w *Writer) Header(h Header) error {
	h.Schema = Schema
	h = h.named()
	return w.write(line{Header: &h})
}

// Visit writes a visit.
func (w *Writer) Visit(v Visit) error { return w.write(line{Visit: &v}) }

// Change writes a change.
func (w *Writer) Change(c Change) error { return w.write(line{Change: &c}) }

// Step writes a step.
func (w *Writer) Step(s Step) error { return w.write(line{Step: &s}) }

// End writes the closing record.
func (w *Writer) End(e End) error { return w.write(line{End: &e}) }

// File is a whole results file.
type File struct {
	Header  Header
	Visits  []Visit
	Pairs   []PairVisit // of a mesh, instead of Visits
	Changes []Change
	End     End
	// Truncated means that the file lacks a complete End record, for example because the run was
	// killed. The visits are valid.
	Truncated bool
}

type syntaxError struct {
	Line int // from 1
	Err  error
}

func (e *syntaxError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }
func (e *syntaxError) Unwrap() error { return e.Err }

// ErrEmpty means that a file has no header.
var ErrEmpty = errors.New(
	"no header: this is not a toll results file, or the run died before its first visit")

// Read reads a results file. An incomplete last line is left out and sets Truncated; other
// malformed lines return a *syntaxError.
func Read(r io.Reader) (*File, error) {
	g := NewGrowing()
	if _, err := io.Copy(g, r); err != nil {
		if syntax := new(syntaxError); errors.As(err, &syntax) || errors.Is(err, ErrEmpty) {
			return nil, err
		}
		return nil, &syntaxError{g.lines + 1, err}
	}
	if err := g.end(); err != nil {
		return nil, err
	}
	return g.File()
}

func (f *File) add(l line, seen *bool) error {
	switch {
	case l.Header != nil:
		if *seen {
			return errors.New("a second header")
		}
		*seen = true
		f.Header = *l.Header
		f.Header.Plan.Steps = nil // each is a record of its own
		f.Header.Plan.Study = cmp.Or(f.Header.Plan.Study, StudyCompare)
		f.Header.adoptRoutes()
		return f.Header.check()
	case !*seen:
		return ErrEmpty
	case l.Visit != nil && (l.Visit.Pair != Pair{} || f.Header.Plan.Mesh != nil):
		return f.addPair(l.Visit)
	case l.Visit != nil:
		if len(f.Visits) >= maxVisits {
			return fmt.Errorf("more than %d visits", maxVisits)
		}
		if err := l.Visit.check(len(f.Header.Plan.Cells)); err != nil {
			return err
		}
		if c := f.Header.Plan.Cells[l.Visit.Cell]; l.Visit.Slices != nil &&
			f.Header.Plan.Loads.At(c).Slice == 0 && !f.Header.Plan.Foreign() {
			return fmt.Errorf("slices of load %s, which is not measured in slices", c.Load)
		}
		l.Visit.refuseNegative()
		// The decoder's slices have spare capacity. Clones save memory.
		l.Visit.Machine, l.Visit.Hops = slices.Clone(l.Visit.Machine), slices.Clone(l.Visit.Hops)
		f.Visits = append(f.Visits, *l.Visit)
	case l.Change != nil:
		return f.addChange(*l.Change)
	case l.Step != nil:
		return f.addStep(*l.Step)
	case l.End != nil:
		if err := l.End.Contention.check(); err != nil {
			return err
		}
		f.End, f.Truncated = *l.End, false
	default:
		return errors.New("unknown record: not a header, visit, change, step or end")
	}
	return nil
}

func (f *File) addPair(v *Visit) error {
	if len(f.Pairs) >= maxPairs {
		return fmt.Errorf("more than %d visits", maxPairs)
	}
	if err := f.Header.Plan.checkPair(v); err != nil {
		return err
	}
	if err := v.checkFigures(); err != nil {
		return err
	}
	f.Pairs = append(f.Pairs, v.PairVisit())
	return nil
}

// schemaError is a schema that this toll does not read.
type schemaError struct{ schema, reads string }

func (e *schemaError) Error() string {
	return fmt.Sprintf("schema %q: this toll reads only %q", e.schema, e.reads)
}

// Hint returns what to do about a file of another version, or "" for other files.
func (e *schemaError) Hint() string {
	kind, _, _ := strings.Cut(e.reads, "/")
	if !strings.HasPrefix(e.schema, kind+"/") {
		return ""
	}
	return "another version of toll wrote it: read it with that version, or measure again"
}

func (h Header) check() error {
	if h.Schema != Schema {
		return &schemaError{h.Schema, Schema}
	}
	if err := h.checkSlices(); err != nil {
		return err
	}
	if err := h.Plan.checkPriors(); err != nil {
		return err
	}
	if n := len(h.Plan.Cells); n > maxCells {
		return fmt.Errorf("%d cells, at most %d are read", n, maxCells)
	}
	if err := errors.Join(h.Environment.check(), h.Contention.check()); err != nil {
		return err
	}
	for _, p := range h.Paths {
		if err := p.check(); err != nil {
			return err
		}
	}
	for _, l := range h.Plan.Loads {
		if err := l.check(); err != nil {
			return err
		}
	}
	if err := h.Plan.checkMesh(); err != nil {
		return err
	}
	if err := h.Plan.checkSweep(); err != nil {
		return err
	}
	if err := h.Plan.checkPins(); err != nil {
		return err
	}
	for _, c := range h.Plan.Cells {
		if s := c.Shape; s.Crowd() && (min(s.Servers, s.Clients, s.Procs) < 1 ||
			max(s.Servers, s.Clients, s.Procs) > maxEnds) {
			return fmt.Errorf("impossible shape %s", s)
		}
	}
	return nil
}

func (v Visit) check(cells int) error {
	if v.Cell < 0 || v.Cell >= cells {
		return fmt.Errorf("cell %d is not in the plan, which has %d cells", v.Cell, cells)
	}
	return v.checkFigures()
}

// refuseNegative marks a visit with a negative metric as failed.
func (v *Visit) refuseNegative() {
	for _, name := range slices.Sorted(maps.Keys(v.Values)) {
		if x := v.Values[name]; x < 0 && v.Failure == "" {
			v.Failure = fmt.Sprintf("metric %s: %g is negative", name, x)
		}
	}
}

func (v Visit) checkFigures() error {
	if v.Round < 0 || v.Round > maxVisits {
		return fmt.Errorf("impossible round %d", v.Round)
	}
	if len(v.Machine) > maxCPUs {
		return fmt.Errorf("%d CPUs, at most %d are read", len(v.Machine), maxCPUs)
	}
	if len(v.Machines) > maxCPUs {
		return fmt.Errorf("%d machines, at most %d are read", len(v.Machines), maxCPUs)
	}
	for _, m := range v.Machines {
		if err := times(math.Abs(m.Ahead), m.Unsure); err != nil {
			return err
		}
		if m.CPUs < 0 || m.CPUs > maxCPUs {
			return fmt.Errorf("impossible machine with %d CPUs", m.CPUs)
		}
	}
	if err := times(v.Elapsed); err != nil {
		return err
	}
	if err := errors.Join(v.Slices.check(), v.Trace.check(), v.Evidence.check()); err != nil {
		return err
	}
	if x := v.Together; x != nil && !(*x >= 0 && *x <= 1) {
		return fmt.Errorf("impossible share of the time %v", *x)
	}
	for _, c := range v.Machine {
		// The kernel's idle counters may decrease slightly.
		if err := times(math.Abs(c.User), math.Abs(c.System), math.Abs(c.IRQ), math.Abs(c.SoftIRQ),
			math.Abs(c.Steal), math.Abs(c.Idle),
			math.Abs(c.Nice), math.Abs(c.IOWait), math.Abs(c.Guest),
			math.Abs(c.GuestNice)); err != nil {
			return err
		}
	}
	if g := v.GPU; g != nil {
		err := times(g.Over, g.Slow.Time, g.Slow.Busy, g.Rest.Time, g.Rest.Busy)
		if err != nil || g.Slow.Gaps < 0 {
			return fmt.Errorf("impossible use of a GPU: %+v", *g)
		}
	}
	if v.Proxy != nil {
		if err := times(math.Abs(v.Proxy.CPU)); err != nil {
			return err
		}
		if v.Proxy.Memory < 0 {
			return fmt.Errorf("impossible proxy memory %d", v.Proxy.Memory)
		}
	}
	for _, client := range v.Rates {
		for _, r := range client {
			if !(r >= 0 && r <= maxRate) {
				return fmt.Errorf("impossible rate %v", r)
			}
		}
	}
	for _, p := range []Party{v.Client, v.Server} {
		if err := p.check(); err != nil {
			return err
		}
	}
	return nil
}

func (p Party) check() error {
	if err := p.TCP.check(); err != nil {
		return err
	}
	for _, n := range []int64{p.Sent, p.Received, p.Trips, p.TotalSent, p.TotalRecv} {
		if n < 0 {
			return fmt.Errorf("negative count %d", n)
		}
	}
	return times(p.Window, p.CPU, p.BusiestCPU, p.Late, p.TCP.RTT, p.TCP.RTTVar)
}

func (f *File) completeRounds() int {
	seen := map[int]int{}
	for _, v := range f.Visits {
		seen[v.Round]++
	}
	n := 0
	for round, k := range seen {
		if k == f.Header.Plan.cellsIn(round) {
			n++
		}
	}
	return n
}

// times returns an error if a time in seconds is negative, larger than 1e9 or NaN.
func times(xs ...float64) error {
	const most = 1e9
	for _, x := range xs {
		if !(x >= 0 && x <= most) {
			return fmt.Errorf("impossible time %v", x)
		}
	}
	return nil
}
