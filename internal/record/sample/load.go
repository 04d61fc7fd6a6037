package sample

import "encoding/json"

// Load is a workload with its options: those that most loads have, and those of its own.
type Load struct {
	Kind    string // its name in the catalogue, internal/record/workload
	Streams int    // connections, sessions (stream, chat, sql) or flows (udp); 0: one
	// Options are those of its own: a comparable struct with JSON tags, such as a
	// workload.BulkOptions, never a pointer to one. Nil: none of them is given.
	Options any
	Nodelay string  // TCP_NODELAY "on" or "off"; "": as the kind has it
	Warmup  float64 // seconds, thrown away
	Window  float64 // seconds, measured
	// Slice is how long the load works in each slice of an epoch; 0: it is not sliced.
	// Of a sliced load Warmup and Window are those of the window that ends the epoch.
	Slice float64
	// Point is which point of a sweep this is, one of Sweep.Points; "": the run is no sweep.
	Point string
}

// ReadOptions reads the options of a load of that kind from the load's JSON object. The
// catalogue, internal/record/workload, sets it: only that knows their types, and
// encoding/json hands nothing to UnmarshalJSON. A program without the catalogue reads none.
var ReadOptions = func(kind string, load []byte) (any, error) { return nil, nil }

// In JSON a load is one object: what stands before its options, these, what stands after.
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
	l.Options, err = ReadOptions(l.Kind, b)
	return err
}

// check refuses options that the reader would not bear.
func (l Load) check() error {
	if o, ok := l.Options.(interface{ Check() error }); ok {
		return o.Check()
	}
	return nil
}
