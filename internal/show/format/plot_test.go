package format

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

func TestBars(t *testing.T) {
	const columns = 11
	p := document.Plot{From: -5, To: 5, Bars: true}
	axis := document.Axis{Low: -5, High: 5, Step: 5}
	for want, n := range map[string]*document.Number{
		"     │━━━  ": {Value: 3},
		"   ━━│     ": {Value: -2},
		"     │     ": nil,
		"   ──┼──   ": {Low: at(-2), High: at(2)},
		"     │━━── ": {Value: 2, Low: at(0.9), High: at(4)},
	} {
		if got := drawn(p, axis, n, columns); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func at(x float64) *float64 { return &x }
