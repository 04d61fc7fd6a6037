// Package trace judges where a mode's microseconds go: the difference of untraced slices, and the
// parts of traced trips that explain it.
package trace

import (
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Report is the judged trace.
type Report struct {
	analysis.Measured
	Traces []Trace `json:"traces,omitempty"` // in the order of cells
	analysis.Said
}

// Trace says where the time goes that a cell takes beyond another one. Prices are in seconds for a
// whole round trip; an epoch counts as one.
type Trace struct {
	Cell    analysis.Cell `json:"cell"`
	Label   string        `json:"label"`
	Against string        `json:"against"` // label
	// Untraced is the difference to be explained: of medians in untraced slices.
	Untraced analysis.Price `json:"untraced"`
	// Path, WakeUps and Relay are what the parts add; Unattributed is what is missing to Untraced.
	Path         analysis.Price `json:"path"`
	WakeUps      analysis.Price `json:"wake_ups"`
	Relay        analysis.Price `json:"relay,omitzero"`
	Unattributed analysis.Price `json:"unattributed"`
	Trips        int            `json:"trips"`
	Followed     float64        `json:"followed"` // share
	Events       float64        `json:"events"`   // per trip
	// Cost is what tracing added to a trip: traced minus untraced.
	Cost analysis.Price `json:"cost"`
	// Refused says why there are no rows: the first broken step.
	Refused  string    `json:"refused,omitempty"`
	Rows     []Row     `json:"rows,omitempty"`
	Segments []Segment `json:"segments,omitempty"`
	// Its are the segments of the one that it is set against.
	Its      []Segment          `json:"its_segments,omitempty"`
	Groups   []sample.StepGroup `json:"groups,omitempty"`
	Readers  map[string]float64 `json:"readers,omitempty"`
	Missing  []string           `json:"missing,omitempty"`
	Findings []Finding          `json:"findings,omitempty"`
}

// Row is a part of the waterfall, there and back.
type Row struct {
	Name string `json:"name"`
	// Mine and Its are mid-means of the cell and of the one it is set against; nil: it has no such
	// part.
	Mine  *float64       `json:"mine_s"`
	Its   *float64       `json:"its_s"`
	Added analysis.Price `json:"added"`
	// Epochs are the differences of single epochs, for a strip.
	Epochs []float64 `json:"epochs_s,omitempty"`
	Hooks  []Row     `json:"hooks,omitempty"` // within the row, by netfilter hook
}

// Segment is a segment of a cell's trip, what tracing costs taken off.
type Segment struct {
	sample.SegmentKey
	Row     string  `json:"row"`
	At      float64 `json:"at_s"` // its beginning on the trip's axis
	MidMean float64 `json:"mid_mean_s"`
	Median  float64 `json:"median_s"`
	P99     float64 `json:"p99_s"`
	Share   float64 `json:"share"`
	Cost    float64 `json:"cost_s"` // of its events, taken off
}

// Finding is a cause with its size, and what would remove it.
type Finding struct {
	Text    string `json:"text"`
	Command string `json:"command,omitempty"` // that removes it
	Lever   string `json:"lever,omitempty"`   // of toll advise
}
