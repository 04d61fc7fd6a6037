package view

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/mesh"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

// One link is slow itself; on another one only the CNI is slow.
func besideMesh(change ...func(*sample.File)) *mesh.Report {
	rng := rand.New(rand.NewPCG(5, 6))
	is := func(p sample.Pair, a, b int) bool {
		return p == (sample.Pair{a, b}) || p == (sample.Pair{b, a})
	}
	return cluster(5, 8, nil, nil, append([]func(*sample.File){func(f *sample.File) {
		m := f.Header.Plan.Mesh
		m.Mode, m.Beside, m.On = "pod", "host", "kubernetes"
		m.Labels = []string{"topology.kubernetes.io/zone"}
		for i := range m.Nodes {
			m.Nodes[i].Labels = map[string]string{m.Labels[0]: fmt.Sprintf("z%d", i%2)}
			f.Header.Environment.Cards = append(
				f.Header.Environment.Cards, sample.Card{
					Name: "eth0", Where: "node " + m.Nodes[i].Name, Driver: "mlx5_core",
					Speed: 25e9})
		}
		var all []sample.PairVisit
		for _, v := range f.Pairs {
			host, pod := math.Exp(0.02*rng.NormFloat64()), 1.3*math.Exp(0.02*rng.NormFloat64())
			if is(v.Pair, 0, 1) {
				host *= 3
			}
			if is(v.Pair, 2, 4) {
				pod *= 2.5
			}
			pod *= host
			if v.Load == "bulk" {
				host, pod = 1/host, 1/pod
			}
			x := v
			x.Beside, x.Value, v.Value = true, v.Value*host, v.Value*pod
			all = append(all, v, x)
		}
		f.Pairs = all
	}}, change...)...)
}

func TestMeshOfTwoNetworks(t *testing.T) {
	r := besideMesh()
	got := table(t, r, format.Options{Width: format.DefaultWidth})
	golden(t, "mesh-beside.txt", got)
	fits(t, got)
	for _, l := range r.Mesh.Costs["latency_p50"].Links {
		want := mesh.Verdict("")
		switch l.Nodes {
		case [2]string{"node-1", "node-2"}:
			want = mesh.SlowLink
		case [2]string{"node-3", "node-5"}:
			want = mesh.SlowMode
		}
		if l.Verdict != want || l.Low == nil || !(*l.Low < l.Ratio && l.Ratio < *l.High) {
			t.Errorf("%v: %+v, want the verdict %q", l.Nodes, l, want)
		}
	}
	for _, name := range []string{"csv", "json", "html", "markdown"} {
		text := written(t, name, Report(r), format.Options{})
		want := []string{"slow link", "slow CNI"}
		if name == "json" {
			want = []string{`"verdict": "link"`, `"verdict": "mode"`, `"beside": {`,
				`"topology.kubernetes.io/zone"`}
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s has no %s", name, w)
			}
		}
	}
}

// The nodes of that link still reach each other. The report also lists what could not be witnessed.
func TestMeshWithoutOnePodLink(t *testing.T) {
	r := besideMesh(func(f *sample.File) {
		f.Header.Plan.Mesh.NotWitnessed = "all between the pods (--unprivileged)"
		for i, v := range f.Pairs {
			if !v.Beside && v.Pair == (sample.Pair{0, 3}) && v.Load == "rr" {
				f.Pairs[i].Value, f.Pairs[i].Failure = 0, "connection timed out"
			}
		}
	})
	got := table(t, r, format.Options{Width: format.DefaultWidth})
	for _, want := range []string{
		"  node-1 and node-4: no visit of rr succeeded over the pod network: connection " +
			"timed out",
		"  What is shown was witnessed; 8 of 480 visits failed and are left out. Not " +
			"witnessed: all between",
		"    the pods (--unprivileged)."} {
		if !testgolden.HasLine(got, want) {
			t.Errorf("no line %q in %q", want, got)
		}
	}
}
