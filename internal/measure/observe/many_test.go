package observe

import "testing"

// Of 1,000 sessions of 50 tokens/s all tokens are followed, or the evidence counts what the capture
// lost and gives no verdict.
func TestManySessions(t *testing.T) {
	const sessions, n = 1000, 50
	m := newMachine(t)
	var server truth
	m.serve(t, "127.0.0.1:7001", model(&server, steady(20*ms), false))
	e, all := follow(t, m, "http://127.0.0.1:7001", n).visit(t, sessions, 1)
	why, ok := e.Clear()
	began, end := all[0].Began, all[0].Began
	for _, r := range all {
		if began.After(r.Began) {
			began = r.Began
		}
		if last := r.Began.Add(r.End); last.After(end) {
			end = last
		}
	}
	t.Logf("%.0f tokens/s: %d of %d matched, %d packets or writes lost, verdict: %v %s",
		sessions*n/end.Sub(began).Seconds(), e.Matched, e.Tokens, e.Lost, ok, why)
	if len(all) != sessions || e.Responses != sessions || e.Tokens > sessions*n ||
		e.Lost == 0 && e.Tokens < sessions*n {
		t.Fatalf("%+v", e)
	}
	const least = 0.95
	enough := float64(e.Matched) >= least*float64(e.Tokens)
	if e.Lost == 0 && !enough || e.Lost > 0 && ok || ok && !enough || !ok && why == "" {
		t.Errorf("%v %q: %+v", ok, why, e)
	}
	sum, whole := 0.0, 0.0
	for _, p := range e.Parts {
		sum += p.Last
	}
	for _, r := range all {
		whole += r.Arrivals[len(r.Arrivals)-1].Seconds() / sessions
	}
	const exact = 1e-6 // s
	if e.Matched == sessions*n && (sum-whole > exact || whole-sum > exact) {
		t.Errorf("the parts add up to %v s, the last token took %v s", sum, whole)
	}
}
