package sample

import "fmt"

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
