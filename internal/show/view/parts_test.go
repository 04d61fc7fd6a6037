package view

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
)

func TestPartOfTokens(t *testing.T) {
	r := routesTo(someChat, chatRoute("published", "127.0.0.1:8080", 0, ""),
		chatRoute("far", "198.18.0.1:80", 0.4, stats.Costs))
	r.Answer = &analysis.Answer{}
	parts := Parts(r)
	if len(parts) != 1 || len(parts[0].Section.Blocks) != 2 {
		t.Fatalf("%+v", parts)
	}
	if far := parts[0].Rows[1]; far.Verdict != string(stats.Worse) || far.Price == 0 {
		t.Errorf("verdict %q, price %v", far.Verdict, far.Price)
	}
}
