package document

import (
	"math"
	"slices"
	"testing"
)

func TestAxis(t *testing.T) {
	p := Plot{From: 0.31, To: 1.03, Baseline: 1, Same: 0.03, Scale: 100}
	a := p.Axis(40)
	values, texts := a.Labels(p.Scale)
	if want := []string{"40", "50", "60", "70", "80", "90", "100"}; len(texts) > 8 ||
		!slices.Contains(texts, want[6]) {
		t.Errorf("labels %q", texts)
	}
	for i, x := range values {
		if x < a.Low || x > a.High || i > 0 && a.At(x, 40) <= a.At(values[i-1], 40) {
			t.Errorf("%g is at %d of the axis %+v", x, a.At(x, 40), a)
		}
	}
	if a.At(0, 40) != 0 || a.At(5, 40) != 39 {
		t.Error("what is beyond the axis is not at its ends")
	}
}

func TestAxisOfOddValues(t *testing.T) {
	odd := []float64{0, 1, -1, 1e-300, 1e300, math.MaxFloat64, math.Inf(1), math.Inf(-1),
		math.NaN()}
	for _, from := range odd {
		for _, to := range odd {
			a := Plot{From: from, To: to, Baseline: 1, Scale: 100}.Axis(20)
			for _, x := range odd {
				if at := a.At(x, 20); at < 0 || at > 19 {
					t.Errorf("%g on %+v is at %d", x, a, at)
				}
			}
			if values, _ := a.Labels(100); len(values) > 100 {
				t.Errorf("%+v has %d labels", a, len(values))
			}
		}
	}
}

func TestAxisOfMicroseconds(t *testing.T) {
	p := Plot{From: -1.5e-6, To: 4.1e-6, Scale: 1e6, Span: 1e-6}
	_, texts := p.Axis(20).Labels(p.Scale)
	if !slices.Equal(texts, []string{"0", "2", "4"}) {
		t.Errorf("labels %q", texts)
	}
	p.From, p.To = 0, 0.04
	if _, texts := p.Axis(20).Labels(p.Scale); !slices.Equal(texts,
		[]string{"0", "10000", "20000", "30000", "40000"}) {
		t.Errorf("labels %q", texts)
	}
	p.From, p.To = 0, 1e-9
	if a := p.Axis(20); a.High-a.Low < p.Span {
		t.Errorf("%+v shows less than a microsecond", a)
	}
}
