package workload

import (
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Flag is an option of a load on the command line. Flags of the same name are one to the user, with
// the same bounds.
type Flag struct {
	Name  string
	Help  string // without the names of its loads
	Value Value
	// With is the flag that this one requires; "": none.
	With string
	// Bare means that the help does not begin with the names of the flag's loads.
	Bare bool
	// NotOfCrowds excludes crowds, which are counted at their servers, for exactly the window.
	NotOfCrowds bool
}

// Value is the type of a flag's value, and the option that it sets: a Whole, Number, Size, Rate,
// Toggle or Choice.
type Value interface {
	preset(l *sample.Load)
}

// Whole is a whole number.
type Whole struct {
	Preset, Least, Most int
	Put                 func(l *sample.Load, n int)
}

// Number is any number.
type Number struct {
	Preset, Least, Most float64
	Put                 func(l *sample.Load, x float64)
}

// Size is a number of bytes. Without a preset the load chooses.
type Size struct {
	Preset, Least, Most int64
	Put                 func(l *sample.Load, n int64)
}

// Rate is in bit/s. By default the load chooses.
type Rate struct {
	Least, Most float64
	Put         func(l *sample.Load, x float64)
}

// Toggle is on or off. The preset is off.
type Toggle struct {
	Put func(l *sample.Load, on bool)
}

// Choice is one of Words, which What describes. The preset is one of them or "".
type Choice struct {
	What, Preset string
	Words        []string
	Put          func(l *sample.Load, word string)
}

func (v Whole) preset(l *sample.Load)  { v.Put(l, v.Preset) }
func (v Number) preset(l *sample.Load) { v.Put(l, v.Preset) }
func (v Rate) preset(*sample.Load)     {}
func (v Toggle) preset(*sample.Load)   {}
func (v Choice) preset(l *sample.Load) { v.Put(l, v.Preset) }

func (v Size) preset(l *sample.Load) {
	if v.Preset != 0 {
		v.Put(l, v.Preset)
	}
}

// OptionError reports what is wrong with options.
type OptionError struct{ text, hint string }

func (e *OptionError) Error() string { return e.text }

// Hint returns the remedy.
func (e *OptionError) Hint() string { return e.hint }

// MaxWindow is the longest window that a user can choose.
const MaxWindow = time.Hour

// maxStreams bounds connections, and MaxMessage what is sent at once, in bytes.
const (
	maxStreams = 256
	MaxMessage = 64 << 20
)

func requestFlag[T any](preset int64, in func(*T) *sample.Messages) Flag {
	return Flag{Name: "request", Help: "bytes of a request", Value: Size{preset, 1, MaxMessage,
		func(l *sample.Load, n int64) { set(l, func(o *T) { in(o).Request = int(n) }) }}}
}

func replyFlag[T any](preset int64, in func(*T) *sample.Messages) Flag {
	return Flag{Name: "reply", Help: "bytes of a reply", Value: Size{preset, 1, MaxMessage,
		func(l *sample.Load, n int64) { set(l, func(o *T) { in(o).Reply = int(n) }) }}}
}

func writeFlag[T any](put func(o *T, n int)) Flag {
	return Flag{
		Name: "write-size", Help: "bytes given to the kernel at once, such as 4k (default 128k)",
		Value: Size{0, 1, MaxMessage, func(l *sample.Load, n int64) {
			set(l, func(o *T) { put(o, int(n)) })
		}}}
}

var nodelayFlag = Flag{
	Name: "nodelay",
	Help: "TCP_NODELAY on both ends: on or off (default on for rr and stream)",
	Bare: true,
	Value: Choice{What: "value of --nodelay", Words: []string{"on", "off"},
		Put: func(l *sample.Load, word string) {
			l.Nodelay = word
		}}}

// New returns the load with its default options.
func (w Workload) New() sample.Load {
	l := sample.Load{Kind: w.Name}
	for _, f := range w.Flags {
		f.Value.preset(&l)
	}
	return l
}

// Time sets the warm-up that the load needs over the wire, and the window if it must be longer than
// usual.
func (w Workload) Time(l *sample.Load, wire sample.Wire) {
	if w.time != nil {
		w.time(l, wire)
	}
}

// Check returns an error for options that exclude each other or do not fit the window.
func (w Workload) Check(l sample.Load) error {
	if w.check == nil {
		return nil
	}
	return w.check(l)
}

// Requirements of a wire's delay, in round trips.
const (
	slowStart = 20 // in bulk's warm-up
	Settled   = 2  // in other warm-ups
	Measured  = 10 // in a window
)

func usualWarmup(w sample.Wire) float64 { return 0.05 + Settled*w.RoundTrip() }

// NotSliced returns why the load with its options cannot be sliced, or "" if it can.
func (w Workload) NotSliced(l sample.Load) string {
	if w.notSliced == nil {
		return "it is not toll's own"
	}
	return w.notSliced(l)
}

func because(why string) func(sample.Load) string { return func(sample.Load) string { return why } }

// sliced permits slices with any options.
var sliced = because("")

func timed(names ...string) func(sample.Load) []string {
	return func(sample.Load) []string { return names }
}

// ManyThreads is the most threads of an end that take their own counts. Beyond it a watcher takes
// them, as in a crowd, because a starved thread reaches the window's bounds late or never.
const ManyThreads = 16

// Threads returns the number of threads of an end that has CPUs for all.
func (w Workload) Threads(l sample.Load) int {
	if w.threads == nil {
		return max(1, l.Streams)
	}
	return w.threads(l)
}
