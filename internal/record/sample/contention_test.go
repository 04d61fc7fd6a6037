package sample

import "testing"

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
