package published

import (
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const schema = "bridgetoll.published/1"

// Report compares published figures with measured ones; docs/results.md documents its JSON form.
type Report struct {
	Schema  string          `json:"schema"`
	Answer  analysis.Answer `json:"answer"`
	Files   []File          `json:"files"` // empty: nothing is compared
	Studies []Result        `json:"studies"`
}

// File is a results file that the studies are compared with.
type File struct {
	Name        string             `json:"name"`
	Started     time.Time          `json:"started"`
	Rounds      int                `json:"rounds"`
	Environment sample.Environment `json:"environment"`
	Wire        *sample.Wire       `json:"wire,omitempty"`
	Warnings    []analysis.Warning `json:"warnings"`
}

// Result is a study and the verdicts on its findings.
type Result struct {
	Name     string        `json:"name"`
	Year     string        `json:"year"`
	Title    string        `json:"title"`
	URL      string        `json:"url"`
	Setup    string        `json:"setup"`
	Baseline string        `json:"baseline"`
	Findings []Finding     `json:"findings"`
	Rows     []Line        `json:"rows"`
	Claims   []ClaimResult `json:"claims"`
	Commands []Needed      `json:"commands"`
	Takes    string        `json:"takes,omitempty"` // how long long commands take
	Notes    []string      `json:"notes"`           // doubts about the study, and different conditions here
	Differs  []string      `json:"-"`               // the notes about this machine's runs
}

// Needed is a command that measures cells of the study.
type Needed struct {
	Command string `json:"command"`
	Missing int    `json:"missing"`
	// Elsewhere lists command lines that measure some or all of the same in other places.
	Elsewhere []Elsewhere `json:"elsewhere,omitempty"`
}

// Line is a published row and its cell here.
type Line struct {
	Row // its Mode is the cell's if there is one
	// StudyMode is the data's name for the row's mode if the cell has another one.
	StudyMode string       `json:"study_mode,omitempty"`
	Cell      *sample.Cell `json:"cell,omitempty"`
	OurOwn    string       `json:"our_metric,omitempty"`
	Share     int          `json:"share,omitempty"` // divisor of the metric
	WhyNot    string       `json:"why_not,omitempty"`
	Table     string       `json:"table,omitempty"`
	Label     string       `json:"label,omitempty"`
	Ratios    []Ratio      `json:"ratios"`
	Here      *Here        `json:"here,omitempty"` // nil: not measured
}

var whats = map[string]string{
	throughput: "throughput",
	cpuIdle:    "idle CPU, and throughput per busy core",
	oneWay:     "latency one way",
	response:   "median response", spike: "longest pause",
}

// What names the line's metric.
func (l Line) What() string {
	if w, ok := whats[l.Metric]; ok {
		return w
	}
	return whats[cpuIdle]
}

// Placing returns the row's placement if its study distinguishes one machine from two, else "".
func (l Line) Placing() string {
	if l.Placement == sameMachine || l.Placement == twoMachines {
		return l.Placement
	}
	return ""
}

// Ratio compares a published ratio with the measured one.
type Ratio struct {
	To        int             `json:"to"` // index of the ratio's baseline row
	Smallest  bool            `json:"smallest,omitempty"`
	Published float64         `json:"published"`
	Stated    bool            `json:"stated,omitempty"`
	Finding   int             `json:"finding"`
	Measured  *analysis.Ratio `json:"measured,omitempty"`
	File      string          `json:"file,omitempty"`
	Verdict   Verdict         `json:"verdict"`
	Why       string          `json:"why,omitempty"` // reason if not measured, where known
	// Datapath is the measured cell's if it differs from the study's; "" otherwise.
	Datapath string `json:"datapath,omitempty"`
}

// Verdict is the result of comparing a published ratio with the measured one.
type Verdict string

const (
	Holds       Verdict = "holds"    // the same direction, or no difference in both
	Gone        Verdict = "gone"     // a published difference that has disappeared
	Reversed    Verdict = "reversed" // a difference in the other direction
	Emerged     Verdict = "new"      // a difference where none was published
	Unclear     Verdict = "unclear"  // too few rounds or too noisy a machine
	NotMeasured Verdict = "not measured"
)

var verdicts = []Verdict{Holds, Gone, Reversed, Emerged, Unclear, NotMeasured}
