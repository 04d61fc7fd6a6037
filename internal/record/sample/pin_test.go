package sample

import (
	"strings"
	"testing"
)

func TestUnknownPlacementIsRefused(t *testing.T) {
	for plan, want := range map[string]string{
		`"pins":[{"name":"nowhere"}]`: `line 1: unknown CPU placement "nowhere"`,
		`"pins":[{"name":""}]`:        `line 1: unknown CPU placement ""`,
		`"cells":[{"pin":"nowhere"}]`: `line 1: unknown CPU placement "nowhere"`} {
		text := `{"header":{"schema":"bridgetoll.results/2","plan":{` + plan + `}}}` + "\n"
		if _, err := Read(strings.NewReader(text)); err == nil || err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

func TestCPUsOf(t *testing.T) {
	p := Plan{CPUs: CPUs{Client: []int{7}},
		Pins: []Pinning{{PinFar, CPUs{Client: []int{0}}}, {PinNear, CPUs{Client: []int{1}}}}}
	for pin, want := range map[string]int{PinFar: 0, PinNear: 1, "": 7} {
		if got := p.CPUsOf(Cell{Pin: pin}).Client[0]; got != want {
			t.Errorf("%q: CPU %d, want %d", pin, got, want)
		}
	}
}
