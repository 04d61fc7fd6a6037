package observe

import (
	"encoding/json"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

func TestNewsAreChecked(t *testing.T) {
	one := func(change func(*farSeen)) news {
		s := farSeen{Seen: tokens.Seen{Came: 1, Departed: []int64{2}, Wrote: []int64{1},
			Sent: []int64{2}, Waits: []string{sample.WaitNagle},
			Events: []tokens.Event{{Text: openai.Text{Len: 1}, Offset: 9}}}}
		change(&s)
		return news{Seen: []farSeen{s}}
	}
	good := one(func(*farSeen) {})
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for name, n := range map[string]news{
		"no departures":   one(func(s *farSeen) { s.Departed = nil }),
		"few departures":  one(func(s *farSeen) { s.Left = []int64{} }),
		"no writes":       one(func(s *farSeen) { s.Wrote = nil }),
		"few writes":      one(func(s *farSeen) { s.Sent = []int64{} }),
		"a cause":         one(func(s *farSeen) { s.Waits = []string{"x"} }),
		"a hop":           one(func(s *farSeen) { s.Hop = mostHops }),
		"a negative hop":  one(func(s *farSeen) { s.Hop = -1 }),
		"a negative text": one(func(s *farSeen) { s.Events[0].Len = -1 }),
		"disorder": one(func(s *farSeen) {
			s.Events = append(s.Events, tokens.Event{Offset: 8, Text: openai.Text{Len: 2}})
			s.Departed, s.Wrote, s.Sent = []int64{2, 2}, []int64{1, 1}, []int64{2, 2}
			s.Waits = []string{"", ""}
		}),
		"a namespace": {Sights: []sight{{Space: mostSpaces}}},
		"hops":        {Hops: make([]farHop, mostHops+1)},
		"a loss":      {Lost: -1},
	} {
		if err := n.check(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzNews checks that no answer of an observer makes its division fail, or prints anything
// unprintable.
func FuzzNews(f *testing.F) {
	f.Add([]byte(`{"seen":[{"hop":0,"Mark":7,"Came":1,"Events":[{"Len":1,"Hash":3,"Offset":9}],` +
		`"Departed":[2],"Wrote":[1],"Sent":[2],"Waits":["nagle"]}]}`))
	f.Add([]byte(`{"sights":[{"space":3,"src":"10.0.0.1:1","dst":"10.0.0.2:2","seq":4,"at":5}]}`))
	f.Add([]byte(`{"error":"\u001b[2J","hops":[{"to":"[::1]:1","about":{"process":"\u001b"}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var n news
		if json.Unmarshal(b, &n) != nil || n.check() != nil {
			return
		}
		for _, s := range append([]string{n.Error}, processes(n.Hops)...) {
			if s != printable.Line(s) {
				t.Errorf("%q is printed", s)
			}
		}
		a := &tokens.Asked{Mark: 7, Texts: []openai.Text{{Len: 1, Hash: 3}}, Read: []int64{9}, Sent: 1,
			Arrived: func(int64) (int64, bool) { return 5, true }}
		for _, s := range n.Seen {
			clock, _ := tokens.Compare(tokens.Crossings(&s.Seen, a))
			rows, _ := tokens.Divide([]tokens.Seen{clock.Cross(s.Seen)}, a)
			tokens.BothWays(rows)
			tokens.PairByText([]tokens.Seen{s.Seen}, []*tokens.Asked{a})
		}
		var there []sighting
		for _, s := range n.Sights {
			there = append(there, s.sighting())
		}
		_, _ = routeOf(aligned([]sighting{{out: true, seq: 4, at: 1}}, there), 0, 0)
	})
}

func processes(hops []farHop) (out []string) {
	for _, h := range hops {
		out = append(out, h.About.Process, h.About.NetNS)
	}
	return out
}

// FuzzOrder checks that an observer that knows no namespace carries out or refuses any order.
func FuzzOrder(f *testing.F) {
	f.Add([]byte(`{"take":{"route":"r","hops":[{"space":0,"to":"10.0.0.1:80"}]}}`))
	f.Add([]byte(`{"bytes":{"mark":1,"ends":[1,2],"texts":[]}}`))
	f.Add([]byte(`{"end":{"from":9,"to":1}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var x order
		if json.Unmarshal(b, &x) != nil || x.Look != nil || x.Start {
			return // these open captures
		}
		o := &observer{w: &Watch{routes: map[string]*route{}}}
		_, _ = o.obey(t.Context(), x)
	})
}
