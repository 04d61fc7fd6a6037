package pathtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// together checks a mode measured from all its placements in one run: a hop counts what all paths
// moved that cross it. Routes that cannot be built are left out.
func together(t *testing.T, b path.Builder, specs []path.Spec, o Options) {
	before := Observe(t)
	var all []*path.Path
	defer func() {
		for _, p := range all {
			if err := p.Close(); err != nil {
				t.Errorf("close %s: %v", p.Spec, err)
			}
		}
		NothingLeft(t, before)
	}()
	for _, spec := range specs {
		switch err := b.Check(context.Background(), spec); {
		case errors.Is(err, path.ErrUnsupported): // the route's own test says whether rightly
		case err != nil:
			t.Fatalf("Check: %v", err)
		default:
			all = append(all, build(t, b, spec))
		}
	}
	if len(all) == 0 {
		t.Skip("no route can be built")
	}
	// The last one's double has the same hops, and none of its traffic may count.
	last := len(all) - 1
	own := slices.DeleteFunc(slices.Clone(all[last].Hops), func(h path.Hop) bool {
		return o.Common != nil && o.Common(h)
	})
	if len(own) > 0 {
		all = append(all, build(t, b, all[last].Spec))
		w, readings := witnessed(t, all[last], func() Traffic { return Exchange(t, all[last+1]) })
		if w.OK {
			t.Errorf("%s: traffic on another path was witnessed:\n%v", all[last].Spec, readings)
		}
		for _, h := range own {
			if !strings.Contains(w.Evidence, h.Name) {
				t.Errorf("the evidence does not name the unused hop %s: %s", h.Name, w.Evidence)
			}
		}
	}
	if len(all) == 1 {
		return
	}
	inOneRun(t, all)
}

func build(t *testing.T, b path.Builder, spec path.Spec) *path.Path {
	t.Helper()
	p, err := b.Build(context.Background(), spec)
	if err != nil {
		t.Fatalf("build %s: %v", spec, err)
	}
	return p
}

// inOneRun moves a different number of bytes over each of the paths between two readings of all
// counters.
func inOneRun(t *testing.T, all []*path.Path) {
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
