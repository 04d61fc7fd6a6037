package sample

import (
	"math"
	"testing"
)

func TestTooBusy(t *testing.T) {
	for _, c := range []struct {
		name           string
		cpus           int
		others, stolen float64
		want           bool
	}{
		{"idle", 2, 0.1, 0, false},
		{"one-of-two", 2, 1, 0, false},
		{"most-of-two", 2, 1.1, 0, true},
		{"stolen", 2, 0.3, 0.8, true},
		{"many", 64, 62.5, 0, false},
		{"all-of-many", 64, 63.5, 0, true},
		{"half-of-one", 1, 0.4, 0, false},
		{"most-of-one", 1, 0.6, 0, true},
	} {
		x := Contention{CPUs: c.cpus, Others: &c.others, Stolen: c.stolen}
		if got := x.TooBusy(); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
		x.Others = nil
		if x.TooBusy() {
			t.Errorf("%s: busy, though what others use is unknown", c.name)
		}
	}
}

func TestJoin(t *testing.T) {
	span := func(took, others, stolen, pressure float64) Contention {
		return Contention{Elapsed: took, CPUs: 2, Others: &others, Stolen: stolen,
			Pressure: &pressure, LoadAverage: others}
	}
	unknown := Contention{Elapsed: 5, CPUs: 2, Stolen: 2}
	for _, c := range []struct {
		name       string
		a, b, want Contention
	}{
		{"weighted", span(1, 1, 0.25, 0.5), span(3, 2, 0.25, 0.9), span(4, 1.75, 0.25, 0.8)},
		{"unknown-first", unknown, span(1, 1, 0, 0.5), span(1, 1, 0, 0.5)},
		{"unknown-last", span(1, 1, 0, 0.5), unknown, span(1, 1, 0, 0.5)},
		{"no-time", span(0, 1, 0, 0.5), span(0, 2, 0, 0.5), span(0, 2, 0, 0.5)},
	} {
		got := c.a.Join(c.b)
		if got.Elapsed != c.want.Elapsed || *got.Others != *c.want.Others ||
			got.Stolen != c.want.Stolen || math.Abs(*got.Pressure-*c.want.Pressure) > 1e-9 {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	if got := unknown.Join(unknown); got.Others != nil || got.Elapsed != 10 || got.Stolen != 2 {
		t.Errorf("two unknown ones: %+v", got)
	}
}

// What rounds to nothing is not printed.
func TestContentionWords(t *testing.T) {
	for stolen, want := range map[float64]string{
		0.045: "other programs keep 1.0 of 2 CPUs busy (load average 3.0)",
		0.06: "other programs keep 1.0 of 2 CPUs busy (load average 3.0, 0.1 CPUs taken by the " +
			"hypervisor)",
	} {
		x := Contention{CPUs: 2, Others: new(1.0), Stolen: stolen, LoadAverage: 3}
		if got := x.Words("keep"); got != want {
			t.Errorf("%g: %q", stolen, got)
		}
	}
}
