package judgetest

import "github.com/bridgetoll/bridgetoll/internal/record/sample"

// Evidence returns evidence with the times, in ms, to the first token, to the last one and of slow
// gaps by part: request, server, TCP, queue, relay, wire, client.
func Evidence(first, last, excess [7]float64) *sample.Evidence {
	e := &sample.Evidence{Writes: true, Responses: 1, ByID: 1, Tokens: 24, Matched: 24,
		ServerGap: 0.020, Gap: 0.020, Hops: []sample.EvidenceHop{
			{Process: "vllm", Port: 8000}, {Process: "nginx", Port: 80}}}
	for i, name := range []string{sample.EvidenceRequest, sample.EvidenceServer,
		sample.EvidenceTCP, sample.EvidenceQueue, sample.EvidenceRelay, sample.EvidenceWire,
		sample.EvidenceClient} {
		p := sample.EvidencePart{Part: name, First: first[i] / 1e3, Last: last[i] / 1e3,
			Excess: excess[i] / 1e3}
		if name == sample.EvidenceRelay {
			p.Hop = 1
		}
		if e.Excess += p.Excess; p.Excess > 0 {
			e.Slow++
		}
		e.Parts = append(e.Parts, p)
	}
	return e
}
