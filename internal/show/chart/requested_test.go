package chart

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func TestRequested(t *testing.T) {
	cell := func(name string) analysis.Cell {
		return analysis.Cell{Cell: sample.Cell{Mode: mode.Name(name)}}
	}
	both := []analysis.Cell{cell("redis://127.0.0.1"), cell("direct")}
	for want, options := range map[string]sample.RequestOptions{
		"PING over redis://127.0.0.1 and direct": {Asks: "PING"},
		"redis-cli -p {port} ping over " +
			"redis://127.0.0.1 and direct": {Client: "redis-cli -p {port} ping"},
	} {
		l := sample.Load{Kind: workload.Request, Options: options}
		if got := requested(l, both); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
