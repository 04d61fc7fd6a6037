package comparison

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// uploads judges uploads of rootless Docker, through slirp4netns, with and without a larger MTU.
func uploads(t *testing.T, rates ...float64) *analysis.Report {
	t.Helper()
	outside := func(m mode.Name) sample.Cell {
		return judgetest.Cell(m, mode.FromContainer, mode.ToOutside, "bulk")
	}
	base := outside(mode.Host)
	wide := tuned(outside(mode.RootlessPublish), "mtu=65520")
	r := judgetest.New(t, base, judgetest.Control(base), outside(mode.RootlessPublish), wide)
	r.File.Header.Plan.Remedies = []sample.Lever{{Name: "mtu-65520",
		Variant: sample.Variant{Mode: wide.Mode, Tune: wide.Tune}}}
	r.Rounds(8, judgetest.Steady(rates...), func(v *sample.Visit) {
		v.Client.TCP.Packet = 1500
		if v.Cell >= 2 {
			v.Proxy = &sample.ProxyUse{Name: "slirp4netns", CPU: 0.96}
		}
	})
	return Judge(r.File)
}

func TestWhyUploadsAreSlow(t *testing.T) {
	const why, without = "relayed rootless-publish :out: slirp4netns",
		"without-relay: rootless-publish"
	for name, x := range map[string]struct {
		rates []float64
		lever string
	}{
		"helps": {[]float64{10, 10, 1, 5},
			"lever-helps rootless-publish :out 5.00 of rootless-publish :out (better): mtu-65520"},
		"does not": {[]float64{10, 10, 1, 1},
			"lever-same rootless-publish :out 1.00 of rootless-publish :out (same): mtu-65520"},
		"harms": {[]float64{10, 10, 1, 0.5},
			"lever-harms rootless-publish :out 0.50 of rootless-publish :out (worse): mtu-65520"},
	} {
		r := uploads(t, x.rates...)
		t.Run(name, func(t *testing.T) {
			wantFindings(t, r, "avoid rootless-publish :out", why, x.lever, without, "witnessed")
		})
		if f := r.Found[1]; f.N != 1500 {
			t.Errorf("packets of %d bytes", f.N)
		}
	}
	// a relay that costs less than a third has no remedies
	wantFindings(t, uploads(t, 10, 10, 9, 9), "keep rootless-publish :out", "witnessed")
}
