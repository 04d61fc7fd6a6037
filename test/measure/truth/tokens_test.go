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
