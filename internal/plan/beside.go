package plan

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/record/lever"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// unpacedTune sets a congestion control that does not pace and that every kernel has.
var unpacedTune = mode.Tunes(mode.Congestion) + "=reno"

// remedyLevers are what a comparison in the lab measures beside a way out that a relay slows down.
var remedyLevers = []string{"mtu-65520", "pasta"}

// Beside returns a comparison's request with what toll measures beside what was asked for, in the
// lab alone and unless the user chose tunes: if the machine's congestion control paces bulk, the
// baseline and bridge without pacing; and what may help the uploads of rootless modes.
func (r Request) Beside(paced bool) Request {
	if r.Study != "" || r.Sweep != nil || len(r.Tunes) > 0 || len(r.Shapes) > 0 ||
		!slices.Equal(r.On, []string{sample.Lab}) {
		return r
	}
	bulk, sliced := false, false
	for _, l := range r.Loads {
		bulk = bulk || l.Kind == workload.Bulk
		sliced = sliced || l.Kind == workload.Bulk && l.Slice > 0
	}
	if paced && sliced {
		r.Unpaced = unpacedTune
	}
	if bulk && slices.ContainsFunc(r.To, mode.Target.Outside) {
		r.remedy()
	}
	return r
}

func (r *Request) remedy() {
	r.Modes = slices.Clone(r.Modes)
	for _, name := range remedyLevers {
		l, _ := lever.Find(name)
		for _, m := range slices.Clone(r.Modes) {
			v, ok := l.With(m, lever.Host{})
			if !ok {
				continue
			}
			r.Remedies = append(r.Remedies, sample.Lever{Name: name, Variant: v})
			if !slices.Contains(r.Modes, v.Mode) {
				r.Modes = append(r.Modes, v.Mode)
			}
		}
	}
}
