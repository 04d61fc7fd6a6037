package sample

import "fmt"

// Program is a pair of foreign programs for exec. In both command lines {host}, {port}, {addr} and
// others are replaced as documented in internal/measure/program.
type Program struct {
	Recipe string `json:"recipe,omitempty"`
	Server string `json:"server" printable:"text"` // command line, for a shell
	Client string `json:"client" printable:"text"`
	// Ready is the condition of a ready server: "tcp" or "udp" once its port is bound, or a regular
	// expression that its output matches.
	Ready   string  `json:"ready"`
	Gauges  []Gauge `json:"metrics,omitempty"`
	Seconds int     `json:"seconds"`           // given to the client
	Timeout float64 `json:"timeout_s"`         // for the server to be ready, and for the client to end
	NoRoot  bool    `json:"no_root,omitempty"` // they run as an ordinary user
	Second  bool    `json:"second,omitempty"`  // they use a second port
}

// Gauge is a metric that a program prints.
type Gauge struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"` // base unit: s, bit/s, B/s, 1/s, …
	// Scale is the factor for a number without a printed unit.
	Scale float64 `json:"scale"`
	Lower bool    `json:"lower_is_better,omitempty"`
	// Pattern finds the number in the client's output: a regular expression whose first group is
	// the number and whose second, if any, its unit. The last match counts.
	Pattern string `json:"pattern" printable:"text"`
}

// Elapsed is the gauge of programs without any other: the client's duration in seconds.
const Elapsed = "elapsed"

// Output is the end of what each program wrote.
type Output struct {
	Server string `json:"server,omitempty" printable:"text"`
	Client string `json:"client,omitempty" printable:"text"`
}

const maxGauges = 64

// Check returns an error for a program with too many metrics.
func (p *Program) Check() error {
	if p != nil && len(p.Gauges) > maxGauges {
		return fmt.Errorf("%d metrics of a program, at most %d are read", len(p.Gauges), maxGauges)
	}
	return nil
}
