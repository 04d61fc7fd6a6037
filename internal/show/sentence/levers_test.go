package sentence

import (
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/advise"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func TestLeverTemplates(t *testing.T) {
	at := func(load string, median float64, v stats.Verdict) advise.Effect {
		return advise.Effect{From: "host", Load: load, Higher: load == workload.Bulk,
			Ratio: analysis.Ratio{Median: median, Low: median - 0.02, High: median + 0.02, N: 9,
				Verdict: v}}
	}
	gain, loss := at(workload.Bulk, 1.18, stats.Better), at(workload.RR, 1.1, stats.Worse)
	const gains = "throughput from the machine itself rises by 18 % (16–20)"
	l := advise.Lever{Name: "big", Gist: "BIG TCP", GivesUp: "isolation",
		Alone: []advise.Effect{gain}}
	dear := l
	dear.Again = []advise.Effect{gain, loss}
	r := &advise.Report{Advice: []advise.Advice{{Mode: "bridge", Levers: []advise.Lever{l},
		Together: []advise.Effect{gain, loss}}, {Mode: "routed", Levers: []advise.Lever{dear}}}}
	told := map[string]bool{}
	for _, tt := range []struct {
		f    analysis.Finding
		want string
	}{
		{analysis.Finding{Code: advise.Interrupted},
			"The search was interrupted: what it had not measured by then is not advised."},
		{analysis.Finding{Code: advise.BusySearch},
			"The machine was too busy: measure again before you set any of this."},
		{analysis.Finding{Code: advise.NothingTried},
			"bridge: Nothing was tried: the run ended too early."},
		{analysis.Finding{Code: advise.TooBusyToTry},
			"bridge: Nothing is certain: the machine was too " +
				"busy to measure the levers. Measure again while no other program is busy."},
		{analysis.Finding{Code: advise.NothingPossible}, "bridge: Nothing could be tried here."},
		{analysis.Finding{Code: advise.AllFailed},
			"bridge: Nothing is certain: every lever failed " +
				"somewhere, or cannot be tried here."},
		{analysis.Finding{Code: advise.NothingCertain}, "bridge: Nothing is certain to help yet."},
		{analysis.Finding{Code: advise.NothingHelps},
			"bridge: Nothing that was tried helps here without doing harm."},
		{analysis.Finding{Code: advise.EffectsUnclear, N: 1, Of: 2},
			"bridge: The effect of 1 of 2 " +
				"levers is not certain: use a longer --budget or a quieter machine."},
		{analysis.Finding{Code: advise.EffectsUnclear, N: 2, Of: 2},
			"bridge: The effect of all of it " +
				"is not certain: use a longer --budget or a quieter machine."},
		{analysis.Finding{Code: advise.Use},
			"bridge: Use BIG TCP: " + gains + "; no measured value gets worse."},
		{analysis.Finding{Code: advise.UseHere},
			"bridge: Use BIG TCP, only for what stays on this " +
				"machine: " + gains + "; no measured value gets worse."},
		{analysis.Finding{Code: advise.LosslessHere},
			"bridge: The links here lose nothing: over lossy " +
				"or long paths another algorithm may be faster, so leave containers that " +
				"serve or call " +
				"other machines as they are."},
		{analysis.Finding{Code: advise.AllTogether}, "bridge: All of them together: " + gains +
			"."},
		{analysis.Finding{Code: advise.AtItsPrice, Rows: []int{1}}, "routed: Not BIG TCP: " +
			gains +
			", but median latency from the machine itself rises by 10 % (8–12)."},
		{analysis.Finding{Code: advise.ForComparison},
			"bridge: For comparison, BIG TCP: " + gains + "; it gives up isolation."},
		{analysis.Finding{Code: advise.MayHelp}, "bridge: BIG TCP may help: it helped alone (" +
			gains +
			"), but there was no time to measure it again."},
	} {
		told[tt.f.Code] = true
		if tt.f.What = "big"; tt.f.Rows == nil {
			tt.f.Rows = []int{0}
		}
		w := &writer{r: r.Base(), study: r}
		if got := w.fill(find(tt.f.Code).text, []analysis.Finding{tt.f}); got != tt.want {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.f.Code, got, tt.want)
		}
	}
	for _, x := range ofLevers {
		if !told[x.code] {
			t.Errorf("%s is untested", x.code)
		}
	}
	r.Study, r.Found = "advise", []analysis.Finding{{Code: advise.NothingHelps, Rows: []int{1}}}
	Fill(r)
	if r.Answer.Question != "What makes bridge and routed faster here?" || len(r.Answer.Text) != 1 {
		t.Errorf("%+v", r.Answer)
	}
	r.Advice, r.Found[0].Rows[0] = r.Advice[1:], 0
	if Fill(r); strings.HasPrefix(r.Answer.Text[0], "routed: ") {
		t.Errorf("the only mode is named: %q", r.Answer.Text)
	}
}

func TestDoubt(t *testing.T) {
	at := func(low, high float64, higher bool, v stats.Verdict) advise.Effect {
		return advise.Effect{From: "remote", Load: workload.UDP, Higher: higher,
			Ratio: analysis.Ratio{Median: 1, Low: low, High: high, N: 9, Verdict: v}}
	}
	for _, x := range []struct {
		effects []advise.Effect
		want    string
	}{
		{[]advise.Effect{at(0.67, 1.2, true, stats.Unclear), at(0.9, 1.1, true, stats.Unclear)},
			"a loss of up to 33 % (udp from another machine) is not ruled out: use a longer " +
				"--budget to find out"},
		{[]advise.Effect{at(0.9, 1.51, false, stats.Unclear)},
			"a loss of up to 51 % (udp from another " +
				"machine) is not ruled out: use a longer --budget to find out"},
		{[]advise.Effect{at(0.96, 1.2, true, stats.Unclear), at(0.5, 1.2, true, stats.Same)}, ""},
	} {
		if got := doubt(x.effects); got != x.want {
			t.Errorf("%q, want %q", got, x.want)
		}
	}
}

func TestPlacesInWords(t *testing.T) {
	for want, e := range map[string]advise.Effect{
		"throughput from the machine itself": {From: "host", Load: workload.Bulk},
		"throughput to another container":    {From: "container", Load: workload.BulkReverse},
		"throughput from a container to outside": {From: "container", To: "outside",
			Load: workload.Bulk},
		"throughput from outside to a container": {From: "container", To: "outside",
			Load: workload.BulkReverse},
		"median latency from the machine itself to outside": {From: "host", To: "outside6",
			Load: workload.RR},
	} {
		if got := Effect(e); !strings.HasPrefix(got, want+":") {
			t.Errorf("%+v: %s", e, got)
		}
	}
}
