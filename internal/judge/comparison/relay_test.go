package comparison

import (
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

// uploads judges uploads of rootless Docker, through slirp4netns, with and without a larger MTU.
func uploads(t *testing.T, rates ...float64) []string {
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
	judged := Judge(r.File)
	for _, f := range judged.Findings {
		if f == "" || f[0] == 'r' {
			t.Errorf("a remedy is among the findings on tunes: %q", f)
		}
	}
	return judged.Answer.Text
}

func TestWhyUploadsAreSlow(t *testing.T) {
	const why = "Over rootless-publish :out each packet, of at most 1500 bytes, passes the process " +
		"slirp4netns, which uses 96 % of a CPU and takes 7.68 s of CPU time for each GB."
	const host = "Without a relay: docker run --network host IMAGE; it gives up port isolation: the " +
		"container has the machine's ports and devices, and before Docker Engine 29.5 --network " +
		"host is the engine's own network namespace."
	for _, x := range []struct {
		name  string
		rates []float64
		want  []string
	}{
		{"helps", []float64{10, 10, 1, 5}, []string{why,
			"An MTU of 65520 inside the networks of a rootless engine gives 500 % of its throughput: " +
				"docker network create -o com.docker.network.driver.mtu=65520 NAME. It may harm " +
				"large datagrams on their way out, which the relay fragments.", host}},
		{"does not", []float64{10, 10, 1, 1}, []string{why,
			"An MTU of 65520 inside the networks of a rootless engine makes no difference.", host}},
		{"harms", []float64{10, 10, 1, 0.5}, []string{why, "An MTU of 65520 inside the networks of " +
			"a rootless engine does not help: 50 % of its throughput.", host}},
	} {
		if got := uploads(t, x.rates...); len(got) < 4 || !slices.Equal(got[1:4], x.want) {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
	// a relay that costs less than a third has no remedies
	if got := uploads(t, 10, 10, 9, 9); len(got) != 1 {
		t.Errorf("%q", got)
	}
}
