package sample

import (
	"encoding/json"
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
