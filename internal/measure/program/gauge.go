package program

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

const maxPattern = 4 << 10 // bytes

var gaugeName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,39}$`)

// ParseGauge parses NAME[:UNIT][:higher|:lower]=REGEXP.
//
// The expression's first group is the number. A second group is its unit as printed, which must be
// of UNIT's kind. By default less is better for a time, and more for everything else. Expressions
// are Go's (RE2), with ^ and $ at each line.
func ParseGauge(s string) (g sample.Gauge, err error) {
	head, pattern, ok := strings.Cut(s, "=")
	if !ok {
		return g, errors.New("it must be NAME=REGEXP")
	}
	parts := strings.Split(head, ":")
	g.Name, g.Pattern, g.Scale = parts[0], pattern, 1
	if !gaugeName.MatchString(g.Name) || g.Name == sample.Elapsed {
		return g,
			fmt.Errorf(
				"%q is not a name for a metric: letters, digits, dots and dashes, and not %s",
				g.Name, sample.Elapsed)
	}
	said := false
	for _, p := range parts[1:] {
		switch p {
		case "higher", "lower":
			g.Lower, said = p == "lower", true
			continue
		}
		u, err := units.ParseUnit(p)
		if err != nil {
			return g, err
		}
		g.Unit, g.Scale = u.Base, u.Scale
	}
	if !said {
		g.Lower = g.Unit == "s"
	}
	if len(pattern) > maxPattern {
		return g, fmt.Errorf("the expression has %d bytes; at most %d are allowed", len(pattern),
			maxPattern)
	}
	re, err := expression(g)
	if err != nil {
		return g, err
	}
	if n := re.NumSubexp(); n < 1 || n > 2 {
		return g,
			fmt.Errorf(
				"the expression needs a group in parentheses for the number, and may have a "+
					"second one for its unit; it has %d", n)
	} else if n == 2 && g.Unit == "" {
		return g, fmt.Errorf("the second group is a unit, so the name needs "+
			"one: %s:s, %s:bit/s, …", g.Name, g.Name)
	}
	return g, nil
}

func expression(g sample.Gauge) (*regexp.Regexp, error) { return inLines(g.Pattern) }

func inLines(pattern string) (*regexp.Regexp, error) { return regexp.Compile("(?m)" + pattern) }

// noMetricError means that the output has no value of a metric.
type noMetricError struct {
	g    sample.Gauge
	what string
}

func (e *noMetricError) Error() string { return "no metric " + e.g.Name + ": " + e.what }

// extract returns a metric's value in a program's output, or an *noMetricError. Of an expression
// the last match counts, because programs print summaries last.
func extract(g sample.Gauge, output string) (float64, error) {
	last, err := match(g, output)
	if err != nil {
		return 0, err
	}
	scale := g.Scale
	if len(last) > 2 {
		u, err := units.ParseUnit(last[2])
		if err != nil {
			return 0, fmt.Errorf("metric %s: %w", g.Name, err)
		}
		if u.Base != g.Unit {
			return 0, fmt.Errorf("metric %s: printed in %q, which cannot be converted to %s",
				g.Name, last[2], g.Unit)
		}
		scale = u.Scale
	}
	x, err := units.ParseNumber(last[1], scale)
	if err != nil {
		return 0, fmt.Errorf("metric %s: %w", g.Name, err)
	}
	if x < 0 { // ratios to it are meaningless
		return 0, fmt.Errorf("metric %s: %q is negative", g.Name, last[1])
	}
	if g.Times > 0 {
		x *= g.Times
	}
	return math.Abs(x), nil // of -0
}

// match returns the groups of a metric's last match, the whole match first.
func match(g sample.Gauge, output string) ([]string, error) {
	if len(g.Paths) > 0 {
		for _, path := range g.Paths {
			if n, ok := inJSON(path, output); ok {
				return []string{n, n}, nil
			}
		}
		return nil, &noMetricError{g, "the output has no JSON with " + strings.Join(g.Paths, " or ")}
	}
	re, err := expression(g)
	if err != nil {
		return nil, err
	}
	all := re.FindAllStringSubmatch(output, -1)
	if len(all) == 0 {
		return nil, &noMetricError{g, "nothing in the output matches " + g.Pattern}
	}
	return all[len(all)-1], nil
}
