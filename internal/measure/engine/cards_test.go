package engine_test

import (
	"context"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/fake"
)

type cardBuilder struct{ *fake.Builder }

func (c cardBuilder) Build(ctx context.Context, s path.Spec) (*path.Path, error) {
	p, err := c.Builder.Build(ctx, s)
	if err == nil {
		var crossed []string
		if s == hostSpec {
			crossed = []string{"eth0"}
		}
		p.AddCards("node a", []sample.Card{{Name: "eth0", Driver: "ixgbe", Device: true,
			Speed: 1e9}}, crossed)
		p.AddCards("node b", []sample.Card{{Name: "eth0", Driver: "igb", Device: true, Speed: 1e9}},
			nil)
	}
	return p, err
}

func TestCardsAreNotedOnce(t *testing.T) {
	q := request()
	q.Rounds = 1
	const lineRate = 941.5e6 / 8 // payload bytes a second of a gigabit card
	b := &fake.Builder{Rate: func(path.Spec, string, int) float64 { return lineRate }}
	r := try(t, context.Background(), b, q, func(c *engine.Config) {
		c.Builders = []path.Builder{cardBuilder{b}}
	})
	if r.err != nil {
		t.Fatal(r.err)
	}
	if all := r.file.Header.Environment.Cards; len(all) != 2 || all[0].Where == all[1].Where {
		t.Errorf("cards %+v", all)
	}
	for _, c := range r.report.Cells {
		want := ""
		if c.Mode == "host" && c.Load == "bulk" {
			want = "card"
		}
		if c.LimitedBy != want || len(c.Cards) != map[bool]int{true: 1}[c.Mode == "host"] {
			t.Errorf("%s %s is limited by %q, crosses %v", c.Mode, c.Load, c.LimitedBy, c.Cards)
		}
	}
}
