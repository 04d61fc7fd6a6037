package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

// A sweep is a set of values of one option. The zero value is none.
type sweep struct {
	axis   workload.Axis
	values []float64 // sorted
}

func (f *traffic) addSweep(fl *pflag.FlagSet) {
	add(fl, flagDef{name: "sweep", group: toSend, value: texts(&f.sweeps), word: "OPTION=VALUES",
		help: "measure the load at several values of one option, and say from which on a mode costs more: " +
			sweepExample + "; also " + strings.Join(axisNames()[1:], ", "), main: "compare"})
}

const sweepExample = "request=1,64,1400,16k"

func axisNames() (out []string) {
	for _, a := range workload.Axes() {
		out = append(out, a.Name)
	}
	return out
}

// loads returns the loads of kinds that have the swept option.
func (s sweep) loads(kinds []string, fl *pflag.FlagSet) ([]string, error) {
	if len(s.values) == 0 {
		return kinds, nil
	}
	if fl.Changed(s.axis.Name) {
		return nil, usage(fmt.Errorf("--%s sets the option that --sweep varies", s.axis.Name),
			"leave --"+s.axis.Name+" out")
	}
	has := loadsWith(s.axis.Name)
	lacks := func(kind string) bool { return !slices.Contains(has, kind) }
	if !fl.Changed("load") {
		if kinds = slices.DeleteFunc(slices.Clone(kinds), lacks); len(kinds) == 0 {
			kinds = has[:1]
		}
		return kinds, nil
	}
	if i := slices.IndexFunc(kinds, lacks); i >= 0 {
		return nil, usage(fmt.Errorf("--sweep %s: the load %s has no %s", s.axis.Name, kinds[i],
			s.axis.Noun),
			"--load "+strings.Join(has, ",")+"; or one of its own: "+strings.Join(
				axesOf(kinds[i]), ", "))
	}
	return kinds, nil
}

func axesOf(kind string) []string {
	return slices.DeleteFunc(axisNames(), func(a string) bool {
		return !slices.Contains(loadsWith(a), kind)
	})
}

// parseSweep parses each --sweep on the command line, of which there may be one.
func parseSweep(given []string) (s sweep, err error) {
	switch len(given) {
	case 0:
		return s, nil
	case 1:
	default:
		return s, usage(errors.New("--sweep was given twice: a run varies one option"),
			"one run for each option")
	}
	name, list, ok := strings.Cut(given[0], "=")
	if !ok {
		return s, usage(fmt.Errorf("--sweep %q: must be OPTION=VALUE,VALUE,…", given[0]),
			"--sweep "+sweepExample)
	}
	known, err := suggest.Parse("sweep", name, axisNames())
	if err != nil {
		return s, usage(err, "")
	}
	s.axis, _ = workload.AxisOf(known)
	for value := range strings.SplitSeq(list, ",") {
		x, err := s.axis.Parse(strings.TrimSpace(value))
		if err != nil {
			return s, s.refuse(value, err)
		}
		if slices.Contains(s.values, x) {
			return s, usage(fmt.Errorf("--sweep %s: %s is given twice", s.axis.Name,
				s.axis.Format(x)), "name each value once")
		}
		s.values = append(s.values, x)
	}
	slices.Sort(s.values)
	switch n := len(s.values); {
	case n < sample.LeastPoints:
		return s, usage(fmt.Errorf("--sweep %s: %d value was given, at least %d are needed",
			given[0], n, sample.LeastPoints), "--sweep "+sweepExample)
	case n > sample.MostPoints:
		return s, usage(fmt.Errorf("--sweep %s: %d values were given, at most %d are possible",
			s.axis.Name, n, sample.MostPoints),
			"give fewer values: toll finds a knee between two of them")
	}
	return s, nil
}

type sweepError struct{ error }

func (e *sweepError) Unwrap() error { return e.error }

func (s sweep) refuse(text string, err error) error {
	return usage(&sweepError{fmt.Errorf("--sweep %s: %q %w", s.axis.Name, text, err)},
		cmp.Or(ownHint(err), "give values that --"+s.axis.Name+" accepts"))
}

// sweepPoint is a value of the swept option. The zero value changes nothing.
type sweepPoint struct {
	of    sweep
	value float64
	name  string
}

// points returns the sweep's points, or a single zero point without a sweep.
func (s sweep) points() []sweepPoint {
	if len(s.values) == 0 {
		return []sweepPoint{{}}
	}
	out := make([]sweepPoint, len(s.values))
	for i, x := range s.values {
		out[i] = sweepPoint{s, x, s.axis.Format(x)}
	}
	return out
}

func (p sweepPoint) put(w workload.Workload, l *sample.Load) error {
	if p.name == "" {
		return nil
	}
	l.Point = p.name
	if err := w.Sweep(l, p.of.axis, p.value); err != nil {
		return p.of.refuse(p.name, err)
	}
	return nil
}

func (p sweepPoint) explain(err error) error {
	var (
		f    *failure
		said *sweepError
	)
	if p.name == "" || !errors.As(err, &f) || errors.As(err, &said) {
		return err
	}
	return &failure{f.code, fmt.Errorf("--sweep %s, at %s: %w", p.of.axis.Name, p.name, f.err),
		f.hint}
}

// into returns the request with the sweep, if there is one.
func (s sweep) into(r plan.Request) plan.Request {
	if len(s.values) == 0 {
		return r
	}
	r.Study = sample.StudySweep
	r.Sweep = &sample.Sweep{Axis: s.axis.Name, Unit: s.axis.Unit}
	for _, p := range s.points() {
		r.Sweep.Points = append(r.Sweep.Points, sample.Point{Name: p.name, Value: p.value})
	}
	return r
}
