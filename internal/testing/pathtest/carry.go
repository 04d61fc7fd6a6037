package pathtest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// CarriesTwice calls Carries twice, because counters need not start at zero.
func CarriesTwice(t *testing.T, p *path.Path) {
	t.Helper()
	for range 2 {
		Carries(t, p)
	}
}

// Carries moves checksummed bytes in both directions over the path, and checks that they are
// witnessed.
func Carries(t *testing.T, p *path.Path) {
	t.Helper()
	w, readings := witnessed(t, p, func() Traffic { return Exchange(t, p) })
	if !w.OK {
		t.Errorf("the right path was not witnessed: %s\n%v", w.Evidence, readings)
	}
}

// unchanged calls f, which runs traffic, and checks that the path's settings stay the same.
// Meanwhile other paths are built and closed.
func unchanged(t *testing.T, p *path.Path, f func()) {
	t.Helper()
	read := func() []path.Setting {
		all, err := p.Inspect()
		if err != nil {
			t.Fatalf("Inspect: %v", err)
		}
		return all
	}
	before := read()
	f()
	d := slices.DeleteFunc(path.Differences(before, read()), func(d sample.Difference) bool {
		switch d.What {
		case "BPF links of the machine": // other tests attach programs meanwhile
			return true
		case "sysctl net.core.rmem_max", "sysctl net.core.wmem_max": // or set the machine's limits
			return true
		}
		return false
	})
	if len(d) > 0 || len(before) == 0 {
		t.Errorf("%d settings, of which a path that nobody touched changed %+v", len(before), d)
	}
}

func around(t *testing.T, p *path.Path, o Options) {
	t.Helper()
	possible := false
	w, readings := witnessed(t, p, func() (tr Traffic) {
		tr, possible = o.Around(t, p)
		return tr
	})
	if possible && w.OK {
		t.Errorf("traffic around the path was witnessed:\n%v", readings)
	}
}

type visit struct {
	hops          []path.Hop
	before, after []sample.Counters
	moved         []path.Moved
	readings      []string
}

func move(t *testing.T, p *path.Path, traffic func() Traffic) visit {
	t.Helper()
	v := visit{hops: append(slices.Clone(p.Hops), p.Guards...)}
	var err error
	if v.before, err = path.ReadAll(v.hops); err != nil {
		t.Fatal(err)
	}
	m := traffic()
	if m.Stop != nil {
		defer m.Stop()
	}
	if v.after, err = path.ReadAll(v.hops); err != nil {
		t.Fatal(err)
	}
	v.moved = m.Moved
	for i, h := range v.hops {
		v.readings = append(v.readings, fmt.Sprintf(
			"%s %s (%s): %+v", h.Kind, h.Name, h.Where, v.after[i].Sub(v.before[i])))
	}
	return v
}

func (v visit) witness(moved []path.Moved) sample.Witness {
	return path.Witness(v.hops, v.before, v.after, moved...)
}

func witnessed(t *testing.T, p *path.Path, traffic func() Traffic) (sample.Witness, []string) {
	t.Helper()
	v := move(t, p, traffic)
	return v.witness(v.moved), v.readings
}
