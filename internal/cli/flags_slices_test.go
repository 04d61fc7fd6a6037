package cli

import (
	"errors"
	"testing"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// asked returns what a comparison with the flags asks for.
func asked(t *testing.T, args ...string) (request, error) {
	t.Helper()
	var f runFlags
	c := &cobra.Command{}
	fl := c.Flags()
	f.addTo(fl)
	f.addLoads(fl, loadNames, "bulk", "rr")
	f.addPin(fl, sample.PinNear)
	f.addWindow(fl)
	f.slicing.add(fl)
	f.addRun(fl)
	if err := fl.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f.request(c, nil)
}

func TestSlicedLoads(t *testing.T) {
	type times struct{ slice, warmup, window float64 }
	for _, tt := range []struct {
		name      string
		args      []string
		bulk, crr times
	}{
		{"default", nil, times{0.016, 0.01, 0.05}, times{0, 0.05, 0.25}},
		{"window", []string{"--window", "300ms"}, times{0.016, 0.01, 0.3}, times{0, 0.05, 0.3}},
		{"the-default-window", []string{"--slice", "32ms", "--window", "250ms"},
			times{0.032, 0.01, 0.25}, times{0, 0.05, 0.25}},
		{"none", []string{"--slice", "0"}, times{0, 0.1, 0.25}, times{0, 0.05, 0.25}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := asked(t, append(tt.args, "--load", "bulk,crr")...)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range []times{tt.bulk, tt.crr} {
				if l := r.Loads[i]; (times{l.Slice, l.Warmup, l.Window}) != want {
					t.Errorf("%s: %+v, want %+v", l.Kind, l, want)
				}
			}
			if r.Same != 0.03 || r.Epoch != epochLength || r.Precision != 0.02 {
				t.Errorf("same %g, epoch %g, precision %g", r.Same, r.Epoch, r.Precision)
			}
			if (r.whole["crr"] == "") != (tt.name == "none") || r.whole["bulk"] != "" {
				t.Errorf("in visits: %v", r.whole)
			}
		})
	}
}

func TestPrecisionOfSame(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want float64
	}{
		{nil, 0.02},
		{[]string{"--same", "0.3%"}, 0.002},
		{[]string{"--same", "10%"}, 0.02},
		{[]string{"--same", "0.3%", "--precision", "5%"}, 0.05},
	} {
		r, err := asked(t, tt.args...)
		if near := r.Precision - tt.want; err != nil || near > 1e-9 || near < -1e-9 {
			t.Errorf("%v: precision %g, %v, want %g", tt.args, r.Precision, err, tt.want)
		}
	}
}

func TestSlicesThatAreRefused(t *testing.T) {
	for _, tt := range []struct {
		args       []string
		want, hint string
	}{
		{[]string{"--load", "crr"},
			"--slice is for bulk, bulk-reverse, rr, udp-rr, query; the loads here are: crr",
			"leave --slice out, or add --load bulk"},
		{[]string{"--load", "bulk", "--bytes", "1M"},
			"--slice 4ms: bulk cannot be measured in slices: --bytes: a transfer has no " +
				"fixed duration",
			"leave --slice out"},
	} {
		_, err := asked(t, append(tt.args, "--slice", "4ms")...)
		var fail *failure
		if !errors.As(err, &fail) || err.Error() != tt.want ||
			fail.Hint() != tt.hint || fail.code != exitUsage {
			t.Errorf("error %v, want %q", err, tt.want)
		}
	}
	if _, err := asked(t, "--load", "crr,bulk", "--slice", "4ms"); err != nil {
		t.Error(err)
	}
}

func TestDefaultsAreSliced(t *testing.T) {
	for kind, want := range map[string]bool{"bulk": true, "rr": true, "udp-rr": true, "query": true,
		"crr": false, "udp": false, "stream": false} {
		r, err := asked(t, "--load", kind)
		if err != nil || r.Loads[0].Slice > 0 != want {
			t.Errorf("%s: %+v, %v", kind, r.Loads, err)
		}
	}
}
