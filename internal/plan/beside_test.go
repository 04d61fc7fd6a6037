package plan

import (
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestRemediesBeside(t *testing.T) {
	out := []mode.Target{mode.ToOutside}
	bulk := []sample.Load{{Kind: "bulk"}}
	for _, x := range []struct {
		name string
		Request
		modes  []mode.Name
		beside []sample.Variant
	}{
		{"rootless Docker", Request{To: out, Loads: bulk,
			Modes: []mode.Name{mode.Bridge, mode.RootlessPublish}},
			[]mode.Name{mode.Bridge, mode.RootlessPublish},
			[]sample.Variant{{Mode: mode.RootlessPublish, Tune: "mtu=65520"}}},
		{"Podman", Request{To: out, Loads: bulk, Modes: []mode.Name{mode.Slirp4netns}},
			[]mode.Name{mode.Slirp4netns, mode.Pasta}, []sample.Variant{{Mode: mode.Pasta}}},
		{"the way in", Request{Loads: bulk, Modes: []mode.Name{mode.RootlessPublish}},
			[]mode.Name{mode.RootlessPublish}, nil},
		{"no upload", Request{To: out, Loads: []sample.Load{{Kind: "rr"}},
			Modes: []mode.Name{mode.RootlessPublish}}, []mode.Name{mode.RootlessPublish}, nil},
		{"own tunes", Request{To: out, Loads: bulk, Tunes: []mode.Tunes{"mtu=9000"},
			Modes: []mode.Name{mode.RootlessPublish}}, []mode.Name{mode.RootlessPublish}, nil},
		{"relays without a remedy", Request{To: out, Loads: bulk,
			Modes: []mode.Name{mode.Pasta}}, []mode.Name{mode.Pasta}, nil},
	} {
		x.On = []string{sample.Lab}
		x.Request = x.Beside(false)
		var beside []sample.Variant
		for _, l := range x.Remedies {
			beside = append(beside, l.Variant)
		}
		if !slices.Equal(x.Modes, x.modes) || !slices.Equal(beside, x.beside) {
			t.Errorf("%s: %v with %v beside, want %v with %v", x.name, x.Modes, beside, x.modes,
				x.beside)
		}
	}
}

func TestPacedBeside(t *testing.T) {
	sliced := []sample.Load{{Kind: "bulk", Slice: 0.016}}
	for _, x := range []struct {
		name  string
		paced bool
		Request
		want mode.Tunes
	}{
		{"paced", true, Request{Loads: sliced}, unpacedTune},
		{"not paced", false, Request{Loads: sliced}, ""},
		{"visits", true, Request{Loads: []sample.Load{{Kind: "bulk"}}}, ""},
		{"another load", true, Request{Loads: []sample.Load{{Kind: "rr", Slice: 0.004}}}, ""},
		{"another study", true, Request{Loads: sliced, Study: sample.StudyScale}, ""},
		{"own tunes", true, Request{Loads: sliced, Tunes: []mode.Tunes{"mtu=9000"}}, ""},
	} {
		x.On = []string{sample.Lab}
		if got := x.Beside(x.paced).Unpaced; got != x.want {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
}
