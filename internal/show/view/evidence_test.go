package view

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
)

// evidenceOf returns evidence with times in ms by part.
func evidenceOf(writes bool, hops []sample.EvidenceHop,
	parts ...sample.EvidencePart) *sample.Evidence {
	e := &sample.Evidence{Hops: hops, Writes: writes, Responses: 6, ByID: 6, Tokens: 144,
		Matched: 144, ServerGap: 0.0107, Gap: 0.0109, Parts: slices.Clone(parts)}
	for i := range e.Parts {
		e.Parts[i].First /= 1e3
		e.Parts[i].Last /= 1e3
	}
	return e
}

func TestEvidenceTable(t *testing.T) {
	vllm := sample.EvidenceHop{Process: "vllm", Port: 8000, NetNS: "net:[1]"}
	direct := chatRoute("direct", "172.17.0.2:8000", 0, "")
	direct.Evidence = evidenceOf(false, []sample.EvidenceHop{vllm},
		sample.EvidencePart{Part: sample.EvidenceRequest, First: 0.0212, Last: 0.0212},
		sample.EvidencePart{Part: sample.EvidenceServer, First: 61.5, Last: 305},
		sample.EvidencePart{Part: sample.EvidenceTCP},
		sample.EvidencePart{Part: sample.EvidenceQueue},
		sample.EvidencePart{Part: sample.EvidenceWire, First: 0.0201, Last: 0.0202},
		sample.EvidencePart{Part: sample.EvidenceClient, First: 0.13, Last: 0.12})
	gateway := chatRoute("gateway", "127.0.0.1:19713", 1.2, stats.Costs)
	gateway.Evidence = evidenceOf(true, []sample.EvidenceHop{vllm,
		{Process: "nginx", Port: 8001}, {Process: "python3", Port: 19713}},
		sample.EvidencePart{Part: sample.EvidenceRequest, First: 2.25, Last: 2.25},
		sample.EvidencePart{Part: sample.EvidenceServer, First: 61.5, Last: 305},
		sample.EvidencePart{Part: sample.EvidenceTCP, First: 0.04, Last: 0.05},
		sample.EvidencePart{Part: sample.EvidenceQueue},
		sample.EvidencePart{Part: sample.EvidenceRelay, Hop: 1, First: 0.7, Last: 36},
		sample.EvidencePart{Part: sample.EvidenceRelay, Hop: 2, First: 40, Last: 700},
		sample.EvidencePart{Part: sample.EvidenceWire, First: 0.02, Last: 0.02},
		sample.EvidencePart{Part: sample.EvidenceClient, First: 0.33, Last: 0.3})
	slow := gateway.Evidence
	slow.Gap, slow.Slow, slow.Excess = 0.0158, 21, 6*0.122
	slow.Parts[1].Excess, slow.Parts[1].ExcessHalf = 6*0.012, 0.0332
	for _, e := range []*sample.Evidence{direct.Evidence, slow} { // of 6 × (305 + 1044) ms
		e.ServerSlow, e.ServerSlowHalf = 0.0089, 0.0041
	}
	slow.Parts[5].Excess, slow.Parts[5].ExcessHalf = 6*0.110, 6*0.0213
	vpn := chatRoute("vpn", "10.8.0.5:8000", 0.21, stats.Costs)
	lost := chatRoute("lost", "10.8.0.5:8001", 0.21, stats.Costs)
	lost.Evidence = evidenceOf(true, []sample.EvidenceHop{vllm}, gateway.Evidence.Parts...)
	lost.Evidence.Lost = 7
	r := routesTo(someChat, direct, gateway, vpn, lost)
	r.Found = endpoints.Findings(r, nil)
	out := summary(t, r, format.Options{})
	golden(t, "evidence.txt", out)
	for l := range strings.Lines(out) {
		if w := ansi.StringWidth(strings.TrimRight(l, "\n")); w > format.DefaultWidth {
			t.Errorf("%d columns: %s", w, l)
		}
	}
	r.Cells[0].Evidence, r.Cells[1].Evidence = nil, nil
	r.Found = endpoints.Findings(r, nil)
	if out := summary(t, r, format.Options{}); strings.Contains(out, "ms to") {
		t.Errorf("a table without evidence:\n%s", out)
	}
}
