package sample

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

const slicedHeader = `{"header":{"schema":"` + Schema +
	`","plan":{"same":0.03,"epoch_s":2,"loads":[{"kind":"rr","slice_s":0.004},{"kind":"crr"}],` +
	`"cells":[{"mode":"host","load":"rr"},{"mode":"host","load":"crr"}]}}}`

func TestReadSlices(t *testing.T) {
	visit := func(text string) string { return `{"visit":{"slices":{` + text + `}}}` }
	for _, tt := range []struct {
		name, header, visit string
		fails               string
	}{
		{"rr", slicedHeader,
			visit(`"slots":[0,7,8],"rates":[1e4,2e4,3e4],"medians_s":[1e-4,5e-5,3e-5],"lost":2`),
			""},
		{"bulk-has-no-medians", slicedHeader, visit(`"slots":[3],"rates":[1e9]`), ""},
		{"all-are-lost", slicedHeader, visit(`"slots":null,"rates":null,"lost":9`), ""},
		{"too-few-rates", slicedHeader, visit(`"slots":[0,7],"rates":[1e4]`),
			"line 2: 2 slices with 1 rates, 0 medians and 0 CPU times"},
		{"too-few-medians", slicedHeader, visit(`"slots":[0,7],"rates":[1e4,1e4],"medians_s":[1]`),
			"line 2: 2 slices with 2 rates, 1 medians and 0 CPU times"},
		{"slots-that-run-backwards", slicedHeader, visit(`"slots":[7,0],"rates":[1e4,1e4]`),
			"line 2: slot 0 out of order"},
		{"a-slot-twice", slicedHeader, visit(`"slots":[7,7],"rates":[1e4,1e4]`),
			"line 2: slot 7 out of order"},
		{"a-slot-below-zero", slicedHeader, visit(`"slots":[-1],"rates":[1e4]`),
			"line 2: slot -1 out of order"},
		{"a-slot-far-out", slicedHeader, visit(`"slots":[1000000000],"rates":[1e4]`),
			"line 2: slot 1000000000 out of order"},
		{"no-rate", slicedHeader, visit(`"slots":[1],"rates":[0]`), "line 2: impossible rate 0"},
		{"a-rate-beyond-all", slicedHeader, visit(`"slots":[1],"rates":[1e300]`),
			"line 2: impossible rate 1e+300"},
		{"a-time-below-zero", slicedHeader, visit(`"slots":[1],"rates":[1],"medians_s":[-1]`),
			"line 2: impossible time -1"},
		{"fewer-than-none-lost", slicedHeader, visit(`"slots":[1],"rates":[1],"lost":-1`),
			"line 2: 1 slices and -1 lost, at most 100000 are read"},
		{"of-a-load-without-slices", slicedHeader,
			`{"visit":{"cell":1,"slices":{"slots":[1],"rates":[1]}}}`,
			"line 2: slices of load crr, which is not measured in slices"},
		{"a-slice-below-zero", strings.Replace(slicedHeader, "0.004", "-1", 1), visit(``),
			"line 1: impossible time -1"},
		{"a-prior-below-zero", strings.Replace(
			slicedHeader, `"plan":{`,
			`"plan":{"priors":[{"metric":"x","variance":-1,"freedom":6}],`, 1), visit(``),
			"line 1: impossible prior of x: variance -1, 6 degrees of freedom"},
		{"a-prior-of-nothing", strings.Replace(
			slicedHeader, `"plan":{`, `"plan":{"priors":[{"metric":"x","variance":1}],`, 1),
			visit(``), "line 1: impossible prior of x: variance 1, 0 degrees of freedom"},
		{"everything-is-the-same", strings.Replace(slicedHeader, "0.03", "1", 1), visit(``),
			"line 1: impossible difference 1 that counts as the same"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := Read(strings.NewReader(tt.header + "\n" + tt.visit + "\n{\"end\":{}}\n"))
			switch {
			case tt.fails == "" && (err != nil || f.Visits[0].Slices == nil):
				t.Errorf("%v", err)
			case tt.fails != "" && (err == nil || err.Error() != tt.fails):
				t.Errorf("error %v, want %q", err, tt.fails)
			}
		})
	}
}

func TestSlicesAreRounded(t *testing.T) {
	s := &Slices{Slots: []int{1, 5}, Rates: []float64{4_123_456_789.123, 1.0 / 3},
		Medians: []float64{0.000_023_456_789_1, 0.1 + 0.2}, Lost: 3}
	f := &File{Header: Header{Plan: Plan{Loads: []Load{{Kind: "rr", Slice: 0.004}},
		Cells: []Cell{{Load: "rr"}}}}, Visits: []Visit{{Slices: s}}}
	first := written(t, f)
	if want := `"slices":{"slots":[1,5],"rates":[4123460000,0.333333],"medians_s":[0.0000234568,0.3],"lost":3}`; !strings.Contains(first, want) {
		t.Errorf("%s\nwant %s", first, want)
	}
	got, err := Read(strings.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	if r := got.Visits[0].Slices.Rates; math.Abs(r[0]/s.Rates[0]-1) > 1e-6 {
		t.Errorf("rates %v", r)
	}
	if second := written(t, got); second != first {
		t.Errorf("written again:\n%s\n%s", first, second)
	}
	if s.Rates[1] != 1.0/3 {
		t.Error("what is written was changed")
	}
	again, err := Read(strings.NewReader(first))
	if err != nil || !reflect.DeepEqual(got, again) {
		t.Errorf("read twice: %v", err)
	}
}
