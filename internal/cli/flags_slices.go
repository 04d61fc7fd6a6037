package cli

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

type sliceFlags struct {
	same  float64       // 0: the command has no such flags
	slice time.Duration // 0: nothing is sliced
}

func (f *sliceFlags) add(fl *pflag.FlagSet) {
	slice := timeFlag(&f.slice, 4*time.Millisecond, minSlice, maxSlice)
	slice.orZero = true
	add(fl,
		flagDef{name: "same", group: howLong, value: shareFlag(&f.same, 0.03),
			help: "a difference within this counts as none: the verdict is same"},
		flagDef{name: sliceFlag, group: howLong, value: slice,
			help: strings.Join(loadsWith(sliceFlag), ", ") +
				": how long a turn is; if not given, bulk takes 16ms, query 10ms, and many streams longer; 0: measure one mode after another for --window each, as with other loads"})
	fl.Lookup("window").Usage += "; 50ms for loads measured in turns"
}

const (
	minSlice = time.Millisecond
	maxSlice = time.Second
)

// epochLength is the total time of the slices in an epoch, in seconds. Tests change it.
var epochLength = plan.UsualEpoch

// slicingOf returns how the loads of a run on the backends are cut into slices.
func (f *traffic) slicingOf(fl *pflag.FlagSet, on []string) plan.Slicing {
	s := plan.Slicing{Slice: f.slicing.slice.Seconds(), Asked: fl.Changed(sliceFlag),
		CPUs: runtime.NumCPU(), Visits: visitsOn(on)}
	if fl.Changed("window") {
		s.Window = f.window.Seconds()
	}
	return s
}

// into returns the request, whose loads are cut, with what the slices are judged by.
func (f sliceFlags) into(r request, fl *pflag.FlagSet) (request, error) {
	if f.same == 0 {
		return r, nil
	}
	r.Same, r.Epoch = f.same, epochLength
	if fl.Changed("same") && !fl.Changed(precisionFlag) {
		const within = 2. / 3 // a wider interval hardly ever lies within --same
		r.Precision = min(r.Precision, within*r.Same)
	}
	sliced := func(l sample.Load) bool { return l.Slice > 0 }
	if fl.Changed(sliceFlag) && f.slice > 0 && !slices.ContainsFunc(r.Loads, sliced) {
		l := r.Loads[0]
		return r, usage(fmt.Errorf("--slice %s: %s cannot be measured in slices: %s", f.slice,
			l.Kind, r.whole[l.Name()]), "leave --slice out")
	}
	return r, nil
}
