package sample

import (
	"strings"
	"testing"
)

func TestOldFilesHaveAPlacement(t *testing.T) {
	for plan, want := range map[string]string{
		`"pin":"auto","cpus":{"client":[0],"server":[1],"same_core":false}`: PinFar,
		`"pin":"auto","cpus":{"client":[0],"server":[0],"same_core":true}`:  PinNear,
		`"pin":"0,0","cpus":{"client":[0],"server":[0],"same_core":true}`:   "",
		`"pin":"none","cpus":{"same_core":false}`:                           "",
	} {
		text := `{"header":{"schema":"bridgetoll.results/2","plan":{"baseline":"host",` + plan +
			`,"loads":[],"cells":[{"mode":"host","from":"host","to":"loopback","load":"rr","on":"lab"}]}}}` + "\n"
		f, err := Read(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		p := f.Header.Plan
		if c := p.Cells[0]; c.Pin != want || len(p.CPUsOf(c).Server) != len(p.CPUs.Server) {
			t.Errorf("%s: placement %q on %+v, want %q", plan, c.Pin, p.CPUsOf(c), want)
		}
	}
}

func TestUnknownPlacementIsRefused(t *testing.T) {
	for _, plan := range []string{`"pins":[{"name":"nowhere"}]`, `"pins":[{"name":""}]`,
		`"cells":[{"pin":"nowhere"}]`} {
		text := `{"header":{"schema":"bridgetoll.results/2","plan":{` + plan + `}}}` + "\n"
		if _, err := Read(strings.NewReader(text)); err == nil ||
			!strings.Contains(err.Error(), "CPU placement") {
			t.Errorf("%s: %v", plan, err)
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
