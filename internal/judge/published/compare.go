package published

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// alike is the distance from 1 up to which a published ratio counts as no difference. Studies with
// one run each cannot resolve less.
const alike = 0.05

// judge compares a published ratio with the measured one. A measured difference must be beyond the
// run's own noise floor. No difference means the verdict same, or a whole interval within alike.
// For gone or new, the interval must exclude the published ratio.
func judge(published float64, m analysis.Ratio) Verdict {
	difference := math.Abs(published-1) > alike
	differs := m.Verdict == stats.Better || m.Verdict == stats.Worse
	within := m.Low >= 1-alike && m.High <= 1+alike
	beyond := m.Low > 1+alike || m.High < 1-alike
	same := m.Verdict == stats.Same || within
	switch {
	case m.N < stats.MinJudged:
		return Unclear
	case !difference && same:
		return Holds
	case !difference && differs && beyond:
		return Emerged
	case difference && differs && (m.Median > 1) == (published > 1):
		return Holds
	case difference && differs:
		return Reversed
	case difference && same && (m.Low > published || m.High < published):
		return Gone
	}
	return Unclear
}

// Input is a results file to compare studies with.
type Input struct {
	Name string
	File *sample.File
	pair *analysis.Pairing
}

// Compare compares studies with the results of files for the same cells.
func Compare(studies []Study, files []Input) (*Report, error) {
	rows, err := Rows()
	if err != nil {
		return nil, err
	}
	r := &Report{Schema: schema, Files: []File{}, Studies: []Result{}}
	files = slices.Clone(files)
	for i, f := range files {
		f.Name, f.pair = printable.Line(f.Name), analysis.Pair(f.File)
		files[i] = f
		h := f.File.Header
		r.Files = append(r.Files, File{Name: f.Name, Started: h.Started, Rounds: f.File.End.Rounds,
			Environment: h.Environment,
			Wire:        h.Plan.Wire, Warnings: analysis.Judge(f.File).Warnings})
	}
	for _, s := range studies {
		res, err := s.result(rows, files)
		if err != nil {
			return nil, err
		}
		r.Studies = append(r.Studies, res)
	}
	r.Answer = r.answer()
	return r, nil
}

func (s Study) result(rows []Row, files []Input) (Result, error) {
	es, err := s.Entries(rows)
	if err != nil {
		return Result{}, err
	}
	if len(es) == 0 {
		return Result{}, fmt.Errorf("%s: no published rows", s.Name)
	}
	out := Result{Name: s.Name, Year: es[0].Year, Title: s.Title, URL: s.URL, Setup: s.Setup,
		Baseline: s.Baseline, Takes: s.Takes,
		Commands: []Needed{}, Claims: []ClaimResult{}, Notes: append([]string{}, s.Doubts...)}
	for _, text := range s.Findings {
		out.Findings = append(out.Findings, Finding{Text: text, Verdicts: map[Verdict]int{}})
	}
	for _, c := range s.Commands {
		n := Needed{Command: c.String()}
		for _, x := range c.Elsewhere {
			n.Elsewhere = append(n.Elsewhere, Elsewhere{x.Where, line(x.Args, c.Save)})
		}
		out.Commands = append(out.Commands, n)
	}
	for _, e := range es {
		l := lineOf(e)
		l.Here = s.here(e, files)
		out.Rows = append(out.Rows, l)
	}
	note := func(text string) {
		if text != "" && !slices.Contains(out.Notes, text) {
			out.Notes, out.Differs = append(out.Notes, text), append(out.Differs, text)
		}
	}
	for _, c := range s.compare(es) {
		x, notes := s.measure(es, c, files)
		for _, n := range notes {
			note(n)
		}
		of := &out.Rows[c.Of]
		if of.Ratios = append(of.Ratios, x); strings.HasPrefix(of.Metric, adjusted) {
			of.Metric = adjusted + out.Rows[c.To].Mode
		}
		if len(files) == 0 {
			continue
		}
		out.Findings[c.Finding].Verdicts[x.Verdict]++
		out.Findings[c.Finding].note(x.Datapath)
		if x.Verdict == NotMeasured && es[c.Of].Why == "" {
			out.Commands[es[c.Of].Command].Missing++
		}
	}
	s.checkClaims(&out, files, note)
	for i, f := range out.Findings {
		out.Findings[i].Verdict = f.verdict(slices.Contains(s.Mostly, i))
	}
	return out, nil
}

func (s Study) checkClaims(out *Result, files []Input, note func(string)) {
	for _, c := range s.Claims {
		x, notes := s.check(c, files)
		out.Claims = append(out.Claims, x)
		for _, n := range notes {
			note(n)
		}
		if len(files) == 0 {
			continue
		}
		out.Findings[c.Finding].Verdicts[x.Verdict]++
		if x.Verdict == NotMeasured {
			out.Commands[c.Command].Missing++
		}
	}
}

func lineOf(e Entry) Line {
	l := Line{Row: e.Row, WhyNot: e.Why, Table: e.Table, Label: e.Label, Ratios: []Ratio{}}
	if e.Why == "" {
		l.Cell, l.OurOwn, l.Share = &e.Cell, e.Figure.Metric, e.Share
		if ours := string(e.Cell.Mode); ours != l.Mode {
			l.Mode, l.StudyMode = ours, l.Mode
		}
	}
	return l
}

func (s Study) measure(es []Entry, c Comparison, files []Input) (Ratio, []string) {
	of, to := es[c.Of].Figure, es[c.To].Figure
	if c.Against != nil {
		to = *c.Against
	}
	out := Ratio{To: c.To, Smallest: c.Smallest, Published: c.Ratio, Stated: c.Stated,
		Finding: c.Finding, Verdict: NotMeasured, Why: es[c.Of].Why}
	var best []string
	for _, f := range files {
		to := to
		x, ok := f.pair.Between(of, to)
		if host := standIn(to, f); !ok && host.Cell != to.Cell {
			to = host
			x, ok = f.pair.Between(of, to)
		}
		if !ok {
			out.Why = cmp.Or(out.Why, f.missing(of.Cell), f.missing(to.Cell))
			continue
		}
		notes := s.notes(f.pair, s.Pace, of.Cell, to.Cell)
		if m := out.Measured; m != nil && cmp.Or(cmp.Compare(len(notes), len(best)),
			-cmp.Compare(x.N, m.N)) >= 0 {
			continue
		}
		out.Measured, out.File, best = &x, f.Name, notes
		out.Datapath = cmp.Or(datapath(f.pair, of.Cell), datapath(f.pair, to.Cell))
	}
	if out.Measured != nil {
		out.Verdict, out.Why = judge(c.Ratio, *out.Measured), ""
	}
	return out, best
}

// standIn returns the figure of host instead of native if the file is of a swarm, which has no
// native mode.
func standIn(f analysis.Figure, file Input) analysis.Figure {
	isSwarm := func(c sample.Cell) bool { return c.On == sample.Swarm }
	if f.Cell.Mode == mode.Native && slices.ContainsFunc(file.File.Header.Plan.Cells, isSwarm) {
		f.Cell.Mode, f.Cell.On = mode.Host, sample.Swarm
	}
	return f
}

// datapath returns the datapath of Open vSwitch if it is not the kernel's, which the study used, or
// "".
func datapath(p *analysis.Pairing, c sample.Cell) string {
	if _, path, _ := p.Conditions(c); strings.HasPrefix(path.Facts["datapath"], "userspace") {
		return path.Facts["datapath"]
	}
	return ""
}

func (f Input) missing(c sample.Cell) string {
	if why := f.pair.Missing(c); why != "" {
		return analysis.Name(c) + ": " + why
	}
	return ""
}

func (s Study) notes(p *analysis.Pairing, pace float64, cells ...sample.Cell) []string {
	var out []string
	add := func(differs bool, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); differs && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	for _, c := range cells {
		l, path, wire := p.Conditions(c)
		if c.Load == workload.Bulk {
			o := workload.BulkOf(l)
			add(l.Streams != s.Streams, "bulk was measured with %s, published with %s",
				units.Plural(l.Streams, "stream"), units.Plural(s.Streams, "stream"))
			add(o.Reverse, "bulk was measured from the server to the client")
			add(o.Bidir, "bulk was measured both ways at once")
			add(o.Bytes > 0, "bulk was measured as a number of bytes, slow start included")
			add(o.Send != "", "bulk was measured with %s", o.Send)
		}
		if c.Load == workload.RR {
			o := workload.RROf(l)
			add(o.Rate > 0, "rr was measured at a fixed rate, in an open loop")
			add(o.Beside, "rr was measured together with a bulk stream")
			add(l.Streams > 1, "rr was measured with %d connections", l.Streams)
		}
		if o := workload.StreamOf(l); c.Load == workload.Stream && o.Pace > 0 {
			took := float64(o.Tokens) / o.Pace
			add(math.Abs(took-s.Response) > alike*s.Response,
				"responses of %.3g s were measured, published are those of %g s", took, s.Response)
			add(pace > 0 && !near(o.Pace, pace),
				"stream was measured at %.3g tokens a second, published at %g", o.Pace, pace)
			add(l.Nodelay == "off", "stream was measured with TCP_NODELAY off")
		}
		if path.On != sample.Peer && slices.Contains(path.Hops, string(mode.HopWire)) {
			add(wire.Rate != s.Wire.Rate, "measured over a wire %s, published over one %s",
				rate(wire), rate(s.Wire))
			add(wire.Delay != s.Wire.Delay, "measured over a wire with a delay: %s", wire)
		}
		pin := p.Pin(c)
		add(pin != "",
			"measured with client and server on %s (--pin %s), in the study wherever the scheduler put them", analysis.PinWords(pin), pin)
		add(c.Mode == mode.Host && c.On == sample.Swarm,
			"on a swarm there is no native mode: host replaces it")
	}
	return out
}

func rate(w sample.Wire) string {
	if w.Rate == 0 {
		return "without a rate"
	}
	return "with " + sample.Wire{Rate: w.Rate}.String()
}
