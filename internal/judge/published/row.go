// Package published compares published comparisons of container networks with results files, and
// reports which of their findings hold. The figures are in published.csv, as printed; studies.go
// has the studies' words, their baselines and the cells that their rows correspond to.
//
// Only ratios to a study's own baseline are compared: absolute figures of other machines and years
// mean nothing here.
package published

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

//go:embed published.csv
var data []byte

// Row is one published figure.
type Row struct {
	Study     string  `json:"-"`
	Year      string  `json:"-"`
	Mode      string  `json:"mode"`
	Placement string  `json:"placement"` // in the study's words
	Load      string  `json:"load"`
	Shape     string  `json:"shape,omitempty"` // its load, in the study's words
	Metric    string  `json:"metric"`
	Value     float64 `json:"value"`
	To        float64 `json:"value_to,omitempty"` // end of a range; 0: no range
	Unit      string  `json:"unit"`
	Note      string  `json:"note,omitempty"`
	Printed   string  `json:"-"` // the value as printed
}

var columns = []string{"source", "year", "mode", "placement", "load", "shape", "metric", "value",
	"unit", "note"}

// Words that rows may use besides the catalogue's modes.
var (
	placements = []string{"host-to-container", "container-to-container", "remote-to-host",
		"remote-to-container", sameMachine, twoMachines}
	loads   = []string{workload.Bulk, workload.RR, workload.Stream}
	metrics = []string{throughput, perClient, cpuIdle, adjusted + string(mode.PublishProxy),
		adjusted + string(mode.PublishNAT),
		AsPrinted, oneWay, response, spike}
)

const (
	throughput = "throughput"
	perClient  = "throughput_per_container"
	cpuIdle    = "cpu_idle"
	adjusted   = "cpu_adjusted_ratio_vs_" // followed by a mode
	// AsPrinted is a ratio that repeats the quotient of two other rows, so it is not compared.
	AsPrinted = "ratio_as_printed"
	oneWay    = "latency_one_way"
	response  = "response_time_median"
	spike     = "latency_spike"
)

const maxRows = 10_000

var year = regexp.MustCompile(`^(undated|\d{4})$`)

// Rows returns the embedded rows.
func Rows() ([]Row, error) { return parse(bytes.NewReader(data)) }

// A misread row would be compared wrongly, so parse is strict.
func parse(r io.Reader) ([]Row, error) {
	c := csv.NewReader(r)
	c.FieldsPerRecord = len(columns)
	head, err := c.Read()
	if err != nil {
		return nil, fmt.Errorf("published data: %w", err)
	}
	if !slices.Equal(head, columns) {
		return nil, fmt.Errorf("published data: columns %q, want %q", head, columns)
	}
	var rows []Row
	for {
		f, err := c.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("published data: %w", err)
		}
		line, _ := c.FieldPos(0)
		row, err := parseRow(f)
		if err == nil && len(rows) == maxRows {
			err = fmt.Errorf("more than %d rows", maxRows)
		}
		if err != nil {
			return nil, fmt.Errorf("published data: line %d: %w", line, err)
		}
		rows = append(rows, row)
	}
}

func parseRow(f []string) (Row, error) {
	r := Row{Study: f[0], Year: f[1], Mode: f[2], Placement: f[3], Load: f[4], Shape: f[5],
		Metric: f[6], Printed: f[7], Unit: f[8], Note: f[9]}
	if _, err := mode.ParseName(r.Mode); err != nil {
		return r, err
	}
	for _, w := range []struct {
		what, word string
		known      []string
	}{{"placement", r.Placement, placements}, {"load", r.Load, loads},
		{"metric", r.Metric, metrics}} {
		if !slices.Contains(w.known, w.word) {
			return r, &suggest.UnknownError{What: w.what, Words: []string{w.word}, Known: w.known}
		}
	}
	switch {
	case r.Study == "":
		return r, errors.New("no source")
	case !year.MatchString(r.Year):
		return r, fmt.Errorf("year %q", r.Year)
	case r.Unit == "":
		return r, errors.New("no unit")
	}
	return r, r.parseValue()
}

func (r *Row) parseValue() error {
	low, high, isRange := strings.Cut(r.Printed, "-")
	var err error
	if r.Value, err = number(low); err != nil {
		return err
	}
	if !isRange {
		return nil
	}
	if r.To, err = number(high); err != nil {
		return err
	}
	if r.To <= r.Value {
		return fmt.Errorf("range %q does not rise", r.Printed)
	}
	return nil
}

func number(s string) (float64, error) {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || !(x >= 0) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("value %q: not a number that can have been measured", s)
	}
	return x, nil
}
