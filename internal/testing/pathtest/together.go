package pathtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Together tests a mode from all its placements in one run, in which all paths are built at the
// same time: a hop counts the traffic of every path that crosses it. Routes that cannot be built
// are left out.
func Together(t *testing.T, b path.Builder, specs []path.Spec, o Options) {
	together(t, b, specs, nil, o)
}

// together is like Together. It also tests the paths in examined one by one while all are built.
func together(t *testing.T, b path.Builder, specs, examined []path.Spec, o Options) {
	before := Observe(t)
	each := func(spec path.Spec, f func(t *testing.T)) {
		if slices.Contains(examined, spec) {
			t.Run(string(spec.From)+"/"+string(spec.To), f)
		}
	}
	var can []path.Spec
	for _, spec := range specs {
		switch err := b.Check(context.Background(), spec); {
		case err == nil:
			can = append(can, spec)
		case !errors.Is(err, machine.ErrUnsupported):
			t.Fatalf("Check: %v", err)
		default: // the route's own test judges the refusal
			each(spec, func(t *testing.T) { check(t, b, spec, o) })
		}
	}
	if len(can) == 0 {
		t.Skip("no route can be built")
	}
	all := make([]*path.Path, len(can))
	eachAtOnce(t, all, func(i int) (err error) {
		all[i], err = b.Build(context.Background(), can[i])
		return err
	})
	defer func() {
		for range 2 { // the second must do nothing
			eachAtOnce(t, all, func(i int) error {
				if all[i] == nil {
					return nil
				}
				return all[i].Close()
			})
		}
		NothingLeft(t, before)
	}()
	if slices.Contains(all, nil) {
		return
	}
	for i, spec := range can {
		each(spec, func(t *testing.T) { examine(t, all[i], o) })
	}
	last := all[len(all)-1]
	if own := slices.DeleteFunc(slices.Clone(last.Hops), o.common); len(own) > 0 {
		double := Built(t, b, last.Spec)
		all = append(all, double)
		elsewhere(t, last, double, own)
	}
	InOneRun(t, all)
}

func (o Options) common(h path.Hop) bool { return o.Common != nil && o.Common(h) }

func eachAtOnce(t *testing.T, all []*path.Path, f func(i int) error) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() {
			if err := f(i); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// elsewhere checks that the path's own hops contradict bytes that crossed another path with the
// same spec.
func elsewhere(t *testing.T, p, other *path.Path, own []path.Hop) {
	t.Helper()
	w, readings := witnessed(t, p, func() Traffic { return Exchange(t, other) })
	if w.OK {
		t.Errorf("%s: traffic on another path was witnessed:\n%v", p.Spec, readings)
	}
	for _, h := range own {
		if !strings.Contains(w.Evidence, h.Name) {
			t.Errorf("the evidence does not name the unused hop %s: %s", h.Name, w.Evidence)
		}
	}
}

// InOneRun moves a different number of bytes over each path, between two readings of all counters,
// and checks that every path is witnessed.
func InOneRun(t *testing.T, all []*path.Path) {
	t.Helper()
	read := func() [][]sample.Counters {
		out := make([][]sample.Counters, len(all))
		for i, p := range all {
			var err error
			if out[i], err = path.ReadAll(slices.Concat(p.Hops, p.Guards)); err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	before := read()
	var moved []path.Moved
	for i, p := range all {
		tr := exchangeMore(t, p, i)
		defer tr.Stop()
		moved = append(moved, tr.Moved...)
	}
	after := read()
	for i, p := range all {
		resent := slices.Clone(moved)
		for k, other := range all {
			if k != i {
				hops := slices.Concat(other.Hops, other.Guards)
				resent[k].Resent += path.ResentByRelays(hops, before[k], after[k])
			}
		}
		hops := path.Among(p, all)
		if w := path.Witness(hops, before[i], after[i], resent...); !w.OK {
			t.Errorf("%s: not witnessed beside the others: %s", p.Spec, w.Evidence)
		}
		resent[i].Forward, resent[i].Backward = 2*resent[i].Forward, 2*resent[i].Backward
		if w := path.Witness(hops, before[i], after[i], resent...); w.OK {
			t.Errorf("%s: twice its bytes were witnessed", p.Spec)
		}
	}
}
