package sample

import (
	"slices"
	"strings"
	"testing"
)

func someEvidence() *Evidence {
	return &Evidence{Hops: []EvidenceHop{{Process: "server", Port: 80}}, Responses: 1, ByID: 1, Tokens: 2,
		Matched: 2, Excess: -1e-6,
		Parts: []EvidencePart{{Part: EvidenceServer, First: 1, Last: 2, Epochs: []float64{1, 2}},
			{Part: EvidenceClient, Hop: 0, First: -1e-6, Last: 1e-6}},
		Waits: []EvidenceWait{{Cause: WaitNagle, Tokens: 1, Sum: 0.04}},
		Response: &EvidenceResponse{Tokens: 2, Written: []float64{1, 2}, Read: []float64{1, 2},
			Last: []float64{1, 2}}}
}

// TestImpossibleEvidence reads evidence of which no report can be made, in a visit and of a path.
func TestImpossibleEvidence(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(e *Evidence)
		ok     bool
	}{
		{"possible", func(*Evidence) {}, true},
		{"no-response", func(e *Evidence) { e.Response = nil }, true},
		{"empty", func(e *Evidence) { *e = Evidence{} }, true},
		{"a-hop-before-the-first", func(e *Evidence) { e.Parts[1].Hop = -1 }, false},
		{"negative-tokens", func(e *Evidence) { e.Tokens = -1 }, false},
		{"too-many-tokens", func(e *Evidence) { e.Matched = mostTokens + 1 }, false},
		{"negative-tokens-of-a-response", func(e *Evidence) { e.Response.Tokens = -1 }, false},
		{"negative-waits", func(e *Evidence) { e.Waits[0].Tokens = -1 }, false},
		{"endless", func(e *Evidence) { e.Parts[0].Last = 1e308 }, false},
		{"endless-the-other-way", func(e *Evidence) { e.Parts[0].Excess = -1e308 }, false},
		{"endless-epoch", func(e *Evidence) { e.Parts[0].Epochs[1] = 1e308 }, false},
		{"endless-response", func(e *Evidence) { e.Response.Read[1] = 1e308 }, false},
		{"stopped-for-ever", func(e *Evidence) { e.Hops[0].Stopped = 1e308 }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := someEvidence()
			tt.change(e)
			visited, built := full(t), full(t)
			visited.Visits[1].Evidence = e
			built.Header.Paths = slices.Clone(built.Header.Paths)
			built.Header.Paths[0].Evidence = e
			for _, f := range []*File{visited, built} {
				if _, err := Read(strings.NewReader(written(t, f))); (err == nil) != tt.ok {
					t.Error(err)
				}
			}
		})
	}
}
