package gate

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// costs maps the units of CPU time per payload byte to their factors to s/B.
var costs = map[string]float64{"s/B": 1, "ns/B": 1e-9, "s/GB": 1e-9, "ms/GB": 1e-12}

// usual are the units that are suggested for an unknown one.
var usual = []string{"kbit/s", "Mbit/s", "Gbit/s", "s/GB", "ns", "us", "ms"}

var exponent = regexp.MustCompile(`^[eE][-+]?[0-9]`)

// limit parses NUMBER of MODE, NUMBER % of MODE, or NUMBER UNIT.
func (p *parser) limit() error {
	number := p.next()
	if number.text == "" {
		return p.hinted(number, "such as 0.9 of host, or 10 Gbit/s", "a number is missing")
	}
	x, err := units.ParseNumber(number.text, 1)
	if err != nil {
		return p.hinted(number, "such as 0.9 of host, or 10 Gbit/s", "%q is not a number",
			number.text)
	}
	unit := word{}
	if len(p.words) > 0 && !slices.Contains(qualifiers, p.words[0].text) {
		unit = p.next()
	}
	if unit.text == "%" && len(p.words) > 0 && p.words[0].text == "of" {
		x, unit = x*0.01, p.next()
	}
	if unit.text == "of" {
		return p.ratio(number, x)
	}
	if unit.at == number.at+len(number.text) && exponent.MatchString(unit.text) {
		return p.hinted(number, "write the number in full, or with a larger unit",
			"%s: a number has no exponent", number.text+unit.text)
	}
	of := p.unit()
	if p.s.Limit, p.s.Unit, err = scaled(x, unit.text, of); err != nil {
		hint := "units are us, ms, Gbit/s, %, s/GB and others; a ratio is written 0.9 of host"
		if near := suggest.Words(unit.text, usual); len(near) > 0 {
			hint = "did you mean " + near[0] + "?"
		}
		return p.hinted(unit, hint, "%w", err)
	}
	return p.fits(of, number, unit)
}

func (p *parser) ratio(number word, x float64) (err error) {
	if !(x > 0) {
		return p.fail(number, fmt.Errorf("%s: a ratio is more than 0", number.text))
	}
	w := p.joined()
	if w.text == "" {
		return p.hinted(w, "such as of host", "a mode is missing after of")
	}
	if p.s.Of, err = p.mode(w); err != nil {
		return err
	}
	if p.s.Of == p.s.Mode {
		return p.fail(w, fmt.Errorf("%s is compared with itself", w.text))
	}
	p.s.Limit = x
	return nil
}

// unit returns the base unit of the sentence's metric: "" for a plain number.
func (p *parser) unit() string {
	if unit, ok := p.known.Metrics[p.s.Metric]; ok {
		return unit
	}
	switch p.s.Metric {
	case Latency:
		return "s"
	case CPU:
		return eitherCPU
	}
	return workload.MetricOf(p.s.Metric, sample.Load{}).Unit
}

// eitherCPU is the unit of CPU time per transaction or per byte.
const eitherCPU = "s or s/B"

// scaled returns a figure in base units. Rates become bytes per second if the metric is in these,
// else bits per second.
func scaled(x float64, unit, of string) (_ float64, base string, err error) {
	scale, is := costs[unit]
	base = "s/B"
	if !is {
		u, err := units.ParseUnit(unit)
		if err != nil {
			return 0, "", err
		}
		scale, base = u.Scale, u.Base
	}
	const bits = 8
	switch {
	case base == "B/s" && of != base:
		scale, base = scale*bits, "bit/s"
	case base == "bit/s" && of == "B/s":
		scale, base = scale/bits, of
	}
	if x *= scale; math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, "", fmt.Errorf("%g %s is not a figure", x, unit)
	}
	return x, base, nil
}

// fits returns an error unless the limit's unit is one of the metric, whose base unit is of.
func (p *parser) fits(of string, number, unit word) error {
	example := strings.TrimSpace(number.text + " " + example(of))
	switch {
	case sameUnit(of, p.s.Unit), of == eitherCPU && (p.s.Unit == "s/B" || p.s.Unit == "s"):
		return nil
	case unit.text == "":
		return p.hinted(number, fmt.Sprintf("such as %s, or %s of host", example, number.text),
			"%s is in %s: %s has no unit", p.s.Metric, of, number.text)
	}
	is := "in " + of
	if of == "" {
		is = "a plain number"
	}
	return p.hinted(unit, "such as "+example, "%s is %s, not in %s", p.s.Metric, is, unit.text)
}

func bare(unit string) bool { return !strings.ContainsAny(unit, "/") && unit != "s" && unit != "1" }

func example(base string) string {
	switch base {
	case "s":
		return "us"
	case "bit/s":
		return "Gbit/s"
	case "s/B", eitherCPU:
		return "s/GB"
	case "1":
		return "%"
	case "1/s":
		return "/s"
	}
	if bare(base) {
		return ""
	}
	return base
}
