package llm

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func TestWordsOfGateways(t *testing.T) {
	for name, tt := range map[string]struct {
		first float64 // ms; of the relay
		apart float64 // s; between reads
		want  [2]string
	}{
		"at once":    {0.3, 0.02, [2]string{"at once", "one by one"}},
		"a busy one": {12, 0.02, [2]string{"at once", "one by one"}},
		"corked":     {212, 0.2, [2]string{"after 0.2 s", "several together"}},
		"at the end": {470, 0, [2]string{"with the last one", "all together"}},
		"held first": {212, 0.02, [2]string{"after 0.2 s", "one by one"}},
	} {
		var rounds []*sample.Evidence
		for i := range 5 {
			e := judgetest.Evidence([7]float64{1: 60, 4: tt.first}, [7]float64{1: 560, 4: 1},
				[7]float64{})
			if i == 3 { // a hitch in one round
				e.Parts[4].First = 5
			}
			e.Response = &sample.EvidenceResponse{Tokens: 24}
			for k := range 24 {
				at := 0.06 + 0.02*float64(k)
				if tt.apart != 0.02 {
					at = 0
					if tt.apart > 0 {
						at = tt.apart * float64(1+k/10)
					}
				}
				e.Response.Read = append(e.Response.Read, at)
			}
			rounds = append(rounds, e)
		}
		if first, all := passed(rounds).words(); [2]string{first, all} != tt.want {
			t.Errorf("%s: %q, %q", name, first, all)
		}
	}
}
