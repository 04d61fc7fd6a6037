package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

type lacking struct{ it, broken []string }

var errBroken = errors.New("the engine is gone")

func (l lacking) Check(_ context.Context, s path.Spec) error {
	for _, n := range []string{s.Client, s.Server} {
		switch {
		case slices.Contains(l.it, n):
			return &machine.UnsupportedError{Missing: "node " + n + " has no ESP"}
		case slices.Contains(l.broken, n):
			return errBroken
		}
	}
	return nil
}

func TestOneNodeThatLacksSomething(t *testing.T) {
	for _, tt := range []struct {
		name  string
		s     lacking
		nodes []string
		want  string
	}{
		{"none", lacking{}, []string{"a", "b", "c"}, ""},
		{"the-first", lacking{it: []string{"a"}}, []string{"a", "b", "c", "d"}, ""},
		{"the-second", lacking{it: []string{"b"}}, []string{"a", "b", "c"}, ""},
		{"two-of-three", lacking{it: []string{"b", "c"}}, []string{"a", "b", "c"},
			"node b has no ESP"},
		{"one-of-two", lacking{it: []string{"b"}}, []string{"a", "b"}, "node b has no ESP"},
		{"broken", lacking{it: []string{"a"}, broken: []string{"c"}}, []string{"a", "b", "c"},
			errBroken.Error()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if err := checkMesh(context.Background(), tt.s, path.Spec{}, tt.nodes); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("error %q, want %q", got, tt.want)
			}
		})
	}
}

func TestExitCodeOfAMesh(t *testing.T) {
	const refused = "connection refused"
	for _, tt := range []struct {
		name  string
		fails func(sweep int, p sample.Pair) bool
		left  string // the node that the engine knows to have gone
		code  int
	}{
		{"all-well", func(int, sample.Pair) bool { return false }, "", exitOK},
		{"one-visit", func(sweep int, p sample.Pair) bool {
			return sweep == 1 && p == sample.Pair{0, 1}
		}, "", exitOK},
		{"a-link", func(_ int, p sample.Pair) bool {
			return p == sample.Pair{0, 1}
		}, "", exitCells},
		{"a-node", func(_ int, p sample.Pair) bool { return p[1] == 3 }, "", exitCells},
		{"a-node-that-left", func(sweep int, p sample.Pair) bool {
			return sweep > 0 && p[1] == 3
		}, "", exitCells},
		{"all", func(int, sample.Pair) bool { return true }, "", exitFailed},
		{"a-node-that-left-at-the-end", func(sweep int, p sample.Pair) bool {
			return sweep == 2 && p == sample.Pair{2, 3}
		}, "d", exitCells},
	} {
		t.Run(tt.name, func(t *testing.T) {
			nodes := []sample.Node{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
			var records bytes.Buffer
			w := sample.NewWriter(&records)
			err := w.Header(sample.Header{Plan: sample.Plan{
				Study:  sample.StudyMesh,
				Budget: 60,
				Loads:  []sample.Load{{Kind: "rr", Window: 0.25}},
				Mesh:   &sample.Mesh{Nodes: nodes, Mode: "host", On: "swarm"}}})
			for sweep := range 3 {
				for a := range nodes {
					for b := a + 1; b < len(nodes); b++ {
						v := sample.Visit{Turn: sample.Turn{
							PairTurn: sample.PairTurn{Sweep: sweep, Pair: sample.Pair{a, b},
								Load: "rr"}}, Proof: sample.Proof{
							Witness: sample.Witness{OK: true}},
							Foreign: sample.Foreign{Values: map[string]float64{
								"latency_p50": 60e-6}}}
						if tt.fails(sweep, v.Pair) {
							v.Failure, v.Left, v.Values = refused, tt.left, nil
						}
						err = errors.Join(err, w.Visit(v))
					}
				}
			}
			if err := errors.Join(err, w.End(sample.End{Reason: sample.EndedByBudget, Sweeps: 3})); err != nil {
				t.Fatal(err)
			}
			f := runFlags{writing: writing{out: outputFlags{format: formatFlag{name: "table"}}}}
			err = f.judge(context.Background(), env{stdout: io.Discard, stderr: io.Discard},
				records.Bytes(), sample.End{}, nil)
			got := &failure{code: exitOK}
			if err != nil && !errors.As(err, &got) {
				t.Fatal(err)
			}
			if got.code != tt.code {
				t.Errorf("exit %d (%v), want %d", got.code, err, tt.code)
			}
		})
	}
}

// A path may break for good, for instance when an engine is restarted.
func TestExitCodeOfPathsThatBroke(t *testing.T) {
	for bad, want := range map[int]int{0: exitOK, 1: exitOK, 3: exitCells, 7: exitCells,
		8: exitCells} {
		var records bytes.Buffer
		w := sample.NewWriter(&records)
		cells := []sample.Cell{{Mode: "host", From: "host", To: "loopback", Load: "bulk",
			On: "docker"}, {Mode: "bridge", From: "host", To: "container", Load: "bulk",
			On: "docker"}}
		err := w.Header(sample.Header{Plan: sample.Plan{
			Baseline: "host", Loads: []sample.Load{{Kind: "bulk", Window: 0.25}}, Cells: cells}})
		const rounds = 8
		for round := range rounds {
			for i := range cells {
				v := sample.Visit{Turn: sample.Turn{Round: round, Cell: i},
					Ends:  sample.Ends{Server: sample.Party{Window: 0.25, Received: 1e8}},
					Proof: sample.Proof{Witness: sample.Witness{OK: true}}}
				if i == 1 && round >= rounds-bad {
					v = sample.Visit{Turn: sample.Turn{Round: round, Cell: i},
						Outcome: sample.Outcome{Failure: "the container is gone"}}
				}
				err = errors.Join(err, w.Visit(v))
			}
		}
		if err := errors.Join(err, w.End(sample.End{Reason: sample.EndedByRounds, Rounds: rounds})); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		f := runFlags{writing: writing{out: outputFlags{format: formatFlag{name: "json"}}}}
		err = f.judge(context.Background(), env{stdout: &out, stderr: io.Discard}, records.Bytes(),
			sample.End{}, nil)
		got := &failure{code: exitOK}
		if err != nil && !errors.As(err, &got) {
			t.Fatal(err)
		}
		lost := slices.ContainsFunc(readReport(t, out.Bytes()).Failed, func(f analysis.Failed) bool {
			return strings.HasSuffix(f.Reason, " and did not come back")
		})
		if got.code != want || lost != (bad >= 3 && bad < rounds) {
			t.Errorf("%d failed at the end: exit %d, want %d\n%s", bad, got.code, want,
				out.String())
		}
	}
}
