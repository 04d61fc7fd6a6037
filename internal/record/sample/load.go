package sample

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Load is a workload with its options.
type Load struct {
	Kind    string // its name in internal/record/workload
	Streams int    // connections, sessions (stream, chat, sql) or flows (udp); 0: 1
	// Options are the kind's own, such as a BulkOptions (not a pointer), or nil.
	Options any
	Nodelay string  // "on" or "off"; "": the kind's default
	Warmup  float64 // seconds
	Window  float64 // seconds
	// Slice is in seconds; 0: not sliced. In a sliced load, Warmup and Window describe the window
	// that ends the epoch.
	Slice float64
	// Point names one of Sweep.Points; "": not a sweep.
	Point string
}

// Name returns the kind, in a sweep with the point.
func (l Load) Name() string { return strings.TrimSpace(l.Kind + " " + l.Point) }

// LoadName returns the name of the cell's load.
func (c Cell) LoadName() string { return Load{Kind: c.Load, Point: c.Point}.Name() }

// In JSON a load is one object: fields before its options, the options, fields after them.
type (
	loadHead struct {
		Kind    string `json:"kind"`
		Point   string `json:"point,omitempty"`
		Streams int    `json:"streams,omitempty"`
	}
	loadTail struct {
		Nodelay string  `json:"nodelay,omitempty"`
		Warmup  float64 `json:"warmup_s"`
		Window  float64 `json:"window_s"`
		Slice   float64 `json:"slice_s,omitempty"`
	}
)

// MarshalJSON implements json.Marshaler.
func (l Load) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for _, part := range []any{
		loadHead{l.Kind, l.Point, l.Streams}, l.Options,
		loadTail{l.Nodelay, l.Warmup, l.Window, l.Slice},
	} {
		if part == nil {
			continue
		}
		b, err := json.Marshal(part)
		if err != nil {
			return nil, err
		}
		if b = b[1 : len(b)-1]; len(b) > 0 {
			out = append(append(out, b...), ',')
		}
	}
	out[len(out)-1] = '}' // the tail is never empty
	return out, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *Load) UnmarshalJSON(b []byte) (err error) {
	var (
		h loadHead
		t loadTail
	)
	if err := json.Unmarshal(b, &h); err != nil {
		return err
	}
	if err := json.Unmarshal(b, &t); err != nil {
		return err
	}
	*l = Load{h.Kind, h.Streams, nil, t.Nodelay, t.Warmup, t.Window, t.Slice, h.Point}
	l.Options, err = readOptions(l.Kind, b)
	return err
}

func (l Load) check() error {
	if o, ok := l.Options.(ExecOptions); ok {
		return o.Program.check()
	}
	return nil
}

// UDP reports whether a load uses UDP. Its cell has its own path, because rules and proxies are for
// one protocol.
func UDP(load string) bool { return strings.HasPrefix(load, "udp") }

// Program is a pair of foreign programs for exec. See internal/measure/program for the
// {placeholders} of its command lines.
type Program struct {
	Recipe string `json:"recipe,omitempty"`
	Server string `json:"server" printable:"text"` // a shell command
	Client string `json:"client" printable:"text"`
	// Ready is "tcp" or "udp" (the server is ready once its port is bound), or a regular expression
	// that its output matches.
	Ready   string  `json:"ready"`
	Gauges  []Gauge `json:"metrics,omitempty"`
	Seconds int     `json:"seconds"`   // given to the client
	Timeout float64 `json:"timeout_s"` // for the server's start and the client's end
	NoRoot  bool    `json:"no_root,omitempty"`
	Second  bool    `json:"second,omitempty"`
	// Fault is a regular expression for lines of the client with which no visit is good; "": none.
	Fault string `json:"fault,omitempty" printable:"text"`
	// Again is a regular expression for what the client prints if its server was busy, so that it
	// is started again; "": never.
	Again string `json:"again,omitempty" printable:"text"`
}

// Gauge is a metric that a program prints.
type Gauge struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"` // base unit: s, bit/s, B/s, 1/s, …
	// Scale applies to numbers without a printed unit.
	Scale float64 `json:"scale"`
	Lower bool    `json:"lower_is_better,omitempty"`
	// Pattern is a regular expression whose first group is the number and whose second, if any, the
	// unit. The last match counts.
	Pattern string `json:"pattern,omitempty" printable:"text"`
	// Paths replace Pattern: keys of JSON joined by dots, of which the first that is there counts.
	// A #2 at the end is the second value of a key that occurs twice.
	Paths    []string `json:"paths,omitempty"`
	Times    float64  `json:"times,omitempty"`    // multiplies the number; 0: 1
	Optional bool     `json:"optional,omitempty"` // it may be missing
}

// Elapsed is the default gauge: the client's duration in seconds.
const Elapsed = "elapsed"

// Output is the end of each program's output.
type Output struct {
	Server string `json:"server,omitempty" printable:"text"`
	Client string `json:"client,omitempty" printable:"text"`
}

const maxGauges = 64

// check returns an error for too many metrics.
func (p *Program) check() error {
	if p != nil && len(p.Gauges) > maxGauges {
		return fmt.Errorf("%d metrics of a program, at most %d are read", len(p.Gauges), maxGauges)
	}
	return nil
}
