package workload

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Axis is an option of loads, named like its flag, that can have several values in a sweep.
type Axis struct {
	Name string
	Noun string // "request size"
	Unit string // B, bit/s, 1/s; "": counts
}

const (
	inBytes  = "B"
	inBits   = "bit/s"
	inEvents = "1/s"
)

// Axes returns all axes.
func Axes() []Axis { return slices.Clone(axes) }

var axes = []Axis{
	{"request", "request size", inBytes}, {"reply", "reply size", inBytes},
	{"datagram", "datagram size", inBytes},
	{"write-size", "write size", inBytes}, {"bytes", "transfer size", inBytes},
	{"rate", "request rate", inEvents}, {"bitrate", "bit rate", inBits},
	{"tokens-per-second", "pace", inEvents},
	{"streams", "number of streams", ""}, {"connections", "number of connections", ""},
	{"sessions", "number of sessions", ""},
	{"queries", "number of queries", ""}, {"tokens", "number of tokens", ""},
	{"batch", "batch size", ""},
}

// AxisOf returns the axis with that name.
func AxisOf(name string) (a Axis, ok bool) {
	i := slices.IndexFunc(axes, func(a Axis) bool { return a.Name == name })
	if i < 0 {
		return a, false
	}
	return axes[i], true
}

// Parse parses a size, a rate, or a number.
func (a Axis) Parse(text string) (float64, error) {
	switch a.Unit {
	case inBytes:
		n, err := units.ParseSize(text)
		return float64(n), err
	case inBits:
		return units.ParseRate(text)
	case inEvents:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return 0, fmt.Errorf("must be a number")
		}
		return x, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("must be a whole number")
	}
	return float64(n), nil
}

// Format formats a value for Parse.
func (a Axis) Format(x float64) string {
	switch a.Unit {
	case inBytes:
		return units.FormatSize(int64(x))
	case inBits:
		return units.FormatRate(x)
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// Words returns a value with its unit: "16 KiB".
func (a Axis) Words(x float64) string {
	switch a.Unit {
	case inBytes:
		return units.Bytes(int64(x))
	case inBits:
		return units.Rate(x)
	case inEvents:
		return a.Format(x) + "/s"
	}
	return a.Format(x)
}

// Sweep sets the value of an axis in a load. The error is the reason why the load cannot have it.
func (w Workload) Sweep(l *sample.Load, a Axis, x float64) error {
	i := slices.IndexFunc(w.Flags, func(f Flag) bool { return f.Name == a.Name && f.With == "" })
	if i < 0 {
		return fmt.Errorf("%s has no %s", w.Name, a.Noun)
	}
	least, most, put := bounds(w.Flags[i].Value)
	if x < least || x > most {
		return fmt.Errorf("must be from %s to %s", a.Format(least), a.Format(most))
	}
	put(l, x)
	return nil
}

// bounds returns the range of a flag's values, without a value that means "off", and a function
// that sets a value in a load. If the values are not numbers, the range is empty.
func bounds(v Value) (least, most float64, put func(l *sample.Load, x float64)) {
	switch v := v.(type) {
	case Whole:
		return float64(v.Least), float64(v.Most), func(l *sample.Load, x float64) {
			v.Put(l, int(x))
		}
	case Number:
		return max(v.Least, 1), v.Most, v.Put
	case Size:
		return float64(v.Least), float64(v.Most), func(l *sample.Load, x float64) {
			v.Put(l, int64(x))
		}
	case Rate:
		return v.Least, v.Most, v.Put
	}
	return 0, -1, nil
}
