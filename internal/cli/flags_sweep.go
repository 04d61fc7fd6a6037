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

type sweepFlags struct {
	given []string // each --sweep on the command line

	axis   workload.Axis
	values []float64
}

func (f *sweepFlags) add(fl *pflag.FlagSet) {
	add(fl, flagDef{name: "sweep", group: toSend, value: texts(&f.given), word: "OPTION=VALUES",
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

func (f *sweepFlags) loads(kinds []string, given func(flag string) bool) ([]string, error) {
	switch len(f.given) {
	case 0:
		return kinds, nil
	case 1:
	default:
		return nil, usage(errors.New("--sweep was given twice: a run varies one option"),
			"one run for each option")
	}
	if err := f.parse(f.given[0]); err != nil {
		return nil, err
	}
	if given(f.axis.Name) {
		return nil, usage(fmt.Errorf("--%s sets the option that --sweep varies", f.axis.Name),
			"leave --"+f.axis.Name+" out")
	}
	has := loadsWith(f.axis.Name)
	lacks := func(kind string) bool { return !slices.Contains(has, kind) }
	if !given("load") {
		if kinds = slices.DeleteFunc(slices.Clone(kinds), lacks); len(kinds) == 0 {
			kinds = has[:1]
		}
		return kinds, nil
	}
	if i := slices.IndexFunc(kinds, lacks); i >= 0 {
		return nil, usage(fmt.Errorf("--sweep %s: the load %s has no %s", f.axis.Name, kinds[i],
			f.axis.Noun),
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

func (f *sweepFlags) parse(text string) error {
	name, list, ok := strings.Cut(text, "=")
	if !ok {
		return usage(fmt.Errorf("--sweep %q: must be OPTION=VALUE,VALUE,…", text),
			"--sweep "+sweepExample)
	}
	known, err := suggest.Parse("sweep", name, axisNames())
	if err != nil {
		return usage(err, "")
	}
	f.axis, _ = workload.AxisOf(known)
	f.values = nil
	for value := range strings.SplitSeq(list, ",") {
		x, err := f.axis.Parse(strings.TrimSpace(value))
		if err != nil {
			return f.refuse(value, err)
		}
		if slices.Contains(f.values, x) {
			return usage(fmt.Errorf("--sweep %s: %s is given twice", f.axis.Name, f.axis.Format(x)),
				"name each value once")
		}
		f.values = append(f.values, x)
	}
	slices.Sort(f.values)
	switch n := len(f.values); {
	case n < sample.LeastPoints:
		return usage(fmt.Errorf("--sweep %s: %d value was given, at least %d are needed", text, n,
			sample.LeastPoints), "--sweep "+sweepExample)
	case n > sample.MostPoints:
		return usage(fmt.Errorf("--sweep %s: %d values were given, at most %d are possible",
			f.axis.Name, n, sample.MostPoints),
			"give fewer values: toll finds a knee between two of them")
	}
	return nil
}

type sweepError struct{ error }

func (e *sweepError) Unwrap() error { return e.error }

func (f *sweepFlags) refuse(text string, err error) error {
	hint := ""
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		hint = hinted.Hint()
	}
	return usage(&sweepError{fmt.Errorf("--sweep %s: %q %w", f.axis.Name, text, err)},
		cmp.Or(hint, "give values that --"+f.axis.Name+" accepts"))
}

// sweepPoint is a value of the swept option. The zero value changes nothing.
type sweepPoint struct {
	f     *sweepFlags
	value float64
	name  string
}

// points returns the sweep's points, or a single zero point without a sweep.
func (f *sweepFlags) points() []sweepPoint {
	if len(f.given) == 0 {
		return []sweepPoint{{}}
	}
	out := make([]sweepPoint, len(f.values))
	for i, x := range f.values {
		out[i] = sweepPoint{f, x, f.axis.Format(x)}
	}
	return out
}

func (p sweepPoint) put(w workload.Workload, l *sample.Load) error {
	if p.f == nil {
		return nil
	}
	l.Point = p.name
	if err := w.Sweep(l, p.f.axis, p.value); err != nil {
		return p.f.refuse(p.name, err)
	}
	return nil
}

func (p sweepPoint) explain(err error) error {
	var (
		f    *failure
		said *sweepError
	)
	if p.f == nil || !errors.As(err, &f) || errors.As(err, &said) {
		return err
	}
	return &failure{f.code, fmt.Errorf("--sweep %s, at %s: %w", p.f.axis.Name, p.name, f.err),
		f.hint}
}

// The total time of the slices in an epoch of one point, in s. A sweep has many epochs in a round,
// and several rounds must fit into the budget.
const (
	pointEpoch  = 1.
	leastEpoch  = 0.3
	sweepRounds = 6
)

func (f *sweepFlags) into(r *plan.Request) error {
	if len(f.given) == 0 {
		return nil
	}
	r.Study = sample.StudySweep
	r.Sweep = &sample.Sweep{Axis: f.axis.Name, Unit: f.axis.Unit}
	for _, p := range f.points() {
		r.Sweep.Points = append(r.Sweep.Points, sample.Point{Name: p.name, Value: p.value})
	}
	if r.Rounds == 0 {
		r.Epoch = min(pointEpoch, max(leastEpoch, r.Budget/float64(sweepRounds*len(r.Loads))))
	}
	return nil
}
