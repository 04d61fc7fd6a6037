package machine

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

func TestContention(t *testing.T) {
	m := tree(t, map[string]string{
		"/proc/loadavg": "35.10 30.00 20.00 40/345 678\n",
		"/proc/pressure/cpu": "some avg10=93.00 avg60=90.00 avg300=80.00 total=1000000\nfull " +
			"avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
		"/proc/stat": "cpu  600 0 0 0 0 0 0 0 0 0\ncpu0 100 0 0 0 0 0 0 0 0 0\n" +
			"cpu1 200 0 0 0 0 0 0 0 0 0\ncpu2 300 0 0 0 0 0 0 0 0 0\n",
	})
	m.Affinity = func() ([]int, error) { return []int{0, 1}, nil }
	const hours = 3600 // the time between the readings is nearly nothing
	used := 0.0
	since, unknown := m.Contention(func() float64 { return used }), m.Contention(math.NaN)
	stat := "cpu0 360100 0 0 0 0 0 0 50 0 0\ncpu1 200 100 100 900 900 80 20 0 0 0\ncpu2 99999 0 " +
		"0 0 0 0 0 0 0 0\n"
	if err := os.WriteFile(filepath.Join(m.Root, "/proc/stat"), []byte(stat), 0o644); err != nil {
		t.Fatal(err)
	}
	used = hours
	c := since()
	if c.CPUs != 2 || c.LoadAverage != 35.1 || c.Others == nil || c.Pressure == nil ||
		*c.Pressure != 0 {
		t.Fatalf("%+v", c)
	}
	if others := *c.Others * c.Elapsed; math.Abs(others-3) > 1e-6 {
		t.Errorf("others used %v s, want 3", others)
	}
	if stolen := c.Stolen * c.Elapsed; math.Abs(stolen-0.5) > 1e-6 {
		t.Errorf("%v s were stolen, want 0.5", stolen)
	}
	if c := unknown(); c.Others != nil {
		t.Errorf("others used %v, which nobody knows", *c.Others)
	}
}

func TestContentionWithoutFiles(t *testing.T) {
	nothing := func() float64 { return 0 }
	if c := tree(t, nil).Contention(nothing)(); c.CPUs != 0 || c.Pressure != nil || c.TooBusy() {
		t.Errorf("%+v", c)
	}
}
