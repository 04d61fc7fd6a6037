package truth

import (
	"math"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// A pause of the machine in one round moves a mean by more than the smallest planted amount.
func TestLastPassesOverPauses(t *testing.T) {
	r := &tokenReport{}
	for i, relay := range []float64{0.62e-3, 0.61e-3, 15e-3, 0.64e-3, 0.63e-3, 0.60e-3} {
		// Two relays are one part.
		v := sample.Visit{}
		v.Evidence = &sample.Evidence{Parts: []sample.EvidencePart{
			{Part: sample.EvidenceServer, Last: 0.63 + 1e-6*float64(i)},
			{Part: sample.EvidenceRelay, Last: relay / 2},
			{Part: sample.EvidenceRelay, Last: relay / 2}}}
		r.visits = append(r.visits, v)
	}
	got := r.last()
	for part, want := range map[string]float64{sample.EvidenceServer: 0.6300025,
		sample.EvidenceRelay: 0.625e-3} {
		if math.Abs(got[part]-want) > 1e-9 {
			t.Errorf("%s: %v s, want %v", part, got[part], want)
		}
	}
}

// One token in a hundred may be far off, and no more. The search for the hops is logged, too.
func TestInstantsAreCompared(t *testing.T) {
	const n, held = 50, 2e-3
	for name, tt := range map[string]struct {
		far         int // visits whose last token is 1 ms off, in both instants
		wrote, left float64
	}{"exact": {0, 0, 0}, "few": {2, 0, 1e-3}, "many": {8, 1e-3, 1e-3}} {
		l := &logs{}
		var visits []sample.Visit
		for i := -1; i < n; i++ {
			var wrote, relayed []int64
			e := &sample.Evidence{Responses: 1, ByID: 1, Tokens: instantTokens, Matched: instantTokens,
				Hops: make([]sample.EvidenceHop, 2), Response: &sample.EvidenceResponse{}}
			for k := range instantTokens {
				at := int64(k+1) * 10_000_000
				wrote, relayed = append(wrote, at), append(relayed, at+1_000_000)
				e.Response.Written = append(e.Response.Written, 0.5e-3+float64(at)/1e9)
			}
			end := float64(wrote[instantTokens-1]) / 1e9
			if i >= 0 && i < tt.far {
				wrote[instantTokens-1] += 1_000_000
				relayed[instantTokens-1] += 1_000_000
			}
			l.wrote, l.relayed = append(l.wrote, wrote), append(l.relayed, relayed)
			for part, last := range map[string]float64{sample.EvidenceRequest: 0.5e-3,
				sample.EvidenceServer: end - held, sample.EvidenceRelay: held + 1e-3,
				sample.EvidenceWire: 7e-3} {
				e.Parts = append(e.Parts, sample.EvidencePart{Part: part})
				e.Response.Last = append(e.Response.Last, last)
			}
			if i >= 0 {
				v := sample.Visit{}
				v.Evidence = e
				visits = append(visits, v)
			}
		}
		wrote, left, err := l.compare(visits, n)
		if err != nil || len(wrote) != n*instantTokens || len(left) != n {
			t.Fatalf("%s: %d and %d instants, %v", name, len(wrote), len(left), err)
		}
		if a, b := p99(wrote), p99(left); math.Abs(a-tt.wrote) > 1e-9 || math.Abs(b-tt.left) > 1e-9 {
			t.Errorf("%s: %g and %g s, want %g and %g", name, a, b, tt.wrote, tt.left)
		}
	}
	if _, _, err := (&logs{}).compare(make([]sample.Visit, 1), 1); err == nil {
		t.Error("visits without logs")
	}
}
