package difference

import (
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// ServedSchema names the version of a Served.
const ServedSchema = "bridgetoll.requests-difference/1"

// Served is the difference between the requests to a server at two times, part by part.
type Served struct {
	Schema   string       `json:"schema"`
	Old      ServedSide   `json:"old"`
	New      ServedSide   `json:"new"`
	Settings []Setting    `json:"settings"`
	Parts    []ServedPart `json:"parts"`
}

// ServedSide is one of the two watchings.
type ServedSide struct {
	Name     string             `json:"name"`
	Started  time.Time          `json:"started,omitzero"`
	Server   sample.EvidenceHop `json:"server"`
	Requests int                `json:"requests"`
	Rate     float64            `json:"requests_per_s"`
	Tool     string             `json:"tool"`
}

// ServedPart is a part of the requests' time; Old or New is nil if that watching has no such part.
type ServedPart struct {
	Part   string             `json:"part"`             // "": all of them
	Client bool               `json:"client,omitempty"` // it is what clients had
	Old    *sample.ServedPart `json:"old"`
	New    *sample.ServedPart `json:"new"`
	// Change is the new median minus the old one. Its interval takes each tenth of the requests as
	// one value.
	Change analysis.Price `json:"change"`
}

// JudgeServed compares what was watched at two times.
func JudgeServed(oldName string, old *sample.Served, newName string, now *sample.Served) *Served {
	r := &Served{Schema: ServedSchema, Old: servedSide(oldName, old), New: servedSide(newName, now),
		Settings: apart(servedSettings(old), servedSettings(now)), Parts: []ServedPart{}}
	if s, ok := busier(old.Environment, now.Environment); ok {
		r.Settings = append(r.Settings, s)
	}
	before := servedParts(old)
	for _, p := range servedParts(now) {
		i := slices.IndexFunc(before, func(o ServedPart) bool {
			return o.Part == p.Part && o.Client == p.Client
		})
		if i >= 0 {
			p.Old = before[i].New
			p.Change = changeOf(medianOf(p.Old), medianOf(p.New))
			before = slices.Delete(before, i, i+1)
		}
		r.Parts = append(r.Parts, p)
	}
	for _, p := range before {
		p.Old, p.New = p.New, nil
		r.Parts = append(r.Parts, p)
	}
	r.Parts = slices.DeleteFunc(r.Parts, func(p ServedPart) bool {
		return (p.Old == nil || p.Old.Max == 0) && (p.New == nil || p.New.Max == 0)
	})
	return r
}

func servedSettings(s *sample.Served) []fact {
	over := "TCP"
	if s.UDP {
		over = "UDP"
	}
	return append([]fact{{"server", s.Server.Place()}, {"over", over}},
		machine(s.Environment)...)
}

func servedSide(name string, s *sample.Served) ServedSide {
	return ServedSide{Name: name, Started: s.Started, Server: s.Server, Requests: s.Requests,
		Rate: s.Rate(), Tool: s.Environment.Tool}
}

// servedParts returns all parts as New, in the order of the report.
func servedParts(s *sample.Served) (out []ServedPart) {
	add := func(client bool, all ...sample.ServedPart) {
		for _, p := range all {
			out = append(out, ServedPart{Part: p.Part, Client: client, New: &p,
				Change: analysis.Price{Unit: "s", Verdict: stats.Unclear}})
		}
	}
	if s.Requests > 0 {
		add(false, append(slices.Clone(s.Parts), s.Whole)...)
	}
	if c := s.Client; c != nil {
		add(true, append(slices.Clone(c.Parts), c.Whole)...)
		if c.Between.Max > 0 { // else no connection had two requests
			add(true, c.Between)
		}
	}
	return out
}

// changeOf returns the difference of two medians. N is 0 unless the interval of both is known.
func changeOf(old, now analysis.Price) analysis.Price {
	if old.N == 0 || now.N == 0 {
		return analysis.Price{Unit: "s", Median: now.Median - old.Median, Low: now.Median - old.Median,
			High: now.Median - old.Median, Verdict: stats.Unclear}
	}
	return trace.Change(old, now)
}

// leastHalf is the least half of a median's interval, in s. With it, medians that are one tick of
// the coarsest clock that kernels measure with (acpi_pm: 0.28 µs) apart are not certain to differ,
// however alike the tenths are.
const leastHalf = 0.15e-6

// medianOf returns a part's median. N is 0 if its interval is not known.
func medianOf(p *sample.ServedPart) analysis.Price {
	half := max(stats.MeanHalf(p.Tenths), leastHalf)
	out := analysis.Price{Unit: "s", Median: p.P50, Low: p.P50 - half, High: p.P50 + half}
	if len(p.Tenths) >= stats.MinJudged {
		out.N, out.Epochs = len(p.Tenths), len(p.Tenths)
	}
	return out
}
