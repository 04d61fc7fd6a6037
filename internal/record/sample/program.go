package sample

import "fmt"

// Program is a pair of foreign programs, as exec runs them. In both command
// lines {host}, {port}, {addr} and others stand for what internal/measure/program says.
type Program struct {
	Recipe string `json:"recipe,omitempty"`        // the one that it came from
	Server string `json:"server" printable:"text"` // command line, for a shell
	Client string `json:"client" printable:"text"`
	// Ready says when the server is: "tcp" or "udp" once its port is bound, or a
	// regular expression that its output matches.
	Ready   string  `json:"ready"`
	Gauges  []Gauge `json:"metrics,omitempty"`
	Seconds int     `json:"seconds"`           // that the client is told to run
	Timeout float64 `json:"timeout_s"`         // for the server to get ready, and for the client to end
	NoRoot  bool    `json:"no_root,omitempty"` // they run as an ordinary user
	Second  bool    `json:"second,omitempty"`  // they use a second port
}

// Gauge is a metric that a program prints.
type Gauge struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"` // base unit: s, bit/s, B/s, 1/s, …
	// Scale is what a number without a printed unit is multiplied by.
	Scale float64 `json:"scale"`
	Lower bool    `json:"lower_is_better,omitempty"`
	// Pattern finds it in the client's output: a regular expression whose first
	// group is the number and whose second, if there is one, its unit. The last
	// match counts.
	Pattern string `json:"pattern" printable:"text"`
}

// Elapsed is the gauge of programs without any other: how long the client took,
// in seconds.
const Elapsed = "elapsed"

// Output is the end of what each program wrote.
type Output struct {
	Server string `json:"server,omitempty" printable:"text"`
	Client string `json:"client,omitempty" printable:"text"`
}

const maxGauges = 64

// Check refuses a program that has too many metrics.
func (p *Program) Check() error {
	if p != nil && len(p.Gauges) > maxGauges {
		return fmt.Errorf("%d metrics of a program, at most %d are read", len(p.Gauges), maxGauges)
	}
	return nil
}
