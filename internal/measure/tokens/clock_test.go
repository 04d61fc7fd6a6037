package tokens

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
)

// TestCompare plants clocks that differ, and delays of packets.
func TestCompare(t *testing.T) {
	const us, ms = time.Microsecond, time.Millisecond
	for _, tt := range []struct {
		name        string
		ahead       time.Duration
		ppm         float64
		there, back time.Duration // the least delays
		grows       time.Duration // by which the way back is slower at the end
		most        time.Duration // of the error of a sum of both ways, beyond the delays' noise
	}{
		{"one clock", 0, 0, 40 * us, 40 * us, 0, 5 * us},
		{"ahead", 1234567 * us, 0, 40 * us, 40 * us, 0, 5 * us},
		{"years behind", -3 * 365 * 24 * time.Hour, 0, 40 * us, 40 * us, 0, 5 * us},
		{"drifts", -5 * time.Second, 40, 90 * us, 40 * us, 0, 20 * us},
		{"drifts back", time.Hour, -300, 40 * us, 40 * us, 0, 20 * us},
		{"one way is slow", 5 * ms, -25, 100 * us, 50 * ms, 0, 20 * us},
		{"a queue grows slowly", 5 * ms, 0, 40 * us, 40 * us, 2 * ms, 6 * ms},
		{"a queue grows", 5 * ms, 0, 40 * us, 40 * us, 200 * ms, 5 * us},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const long = 10 * time.Second
			r := rand.New(rand.NewPCG(1, 2))
			noise := func() int64 { return int64(r.ExpFloat64() * 5e3) }
			began := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
			there := func(here int64) int64 {
				return here + int64(tt.ahead) + int64(tt.ppm/1e6*float64(here-began))
			}
			var all []Crossing
			for i := range 500 {
				here := began + int64(i)*int64(long)/500
				grown := int64(tt.grows) * int64(i) / 500
				all = append(all, Crossing{here, there(here + int64(tt.there) + noise()), false},
					Crossing{here + 1e6 + int64(tt.back) + grown + noise(), there(here + 1e6), true})
			}
			c, ok := Compare(all)
			if !ok {
				t.Fatal("the clocks are not compared")
			}
			if at := all[700].Here; c.Here(c.There(at))-at > 1 || at-c.Here(c.There(at)) > 1 {
				t.Errorf("%d becomes %d there, and %d", at, c.There(at), c.Here(c.There(at)))
			}
			if half := (tt.there + tt.back) / 2; c.Unsure > half+50*us || c.Unsure < half-50*us {
				t.Errorf("unsure by %v, of ways that take %v", c.Unsure, 2*half)
			}
			for i := 0; i < len(all); i += 2 {
				away, back := all[i], all[i+1]
				got := c.Here(away.There) - away.Here + back.Here - c.Here(back.There)
				want := int64(tt.there+tt.back) + int64(tt.grows)*int64(i/2)/500
				if d := time.Duration(got - want); d.Abs() > tt.most+60*us {
					t.Fatalf("%d: both ways take %v longer than they do", i/2, d)
				}
				if d := time.Duration(c.Here(away.There) - away.Here - int64(tt.there)); d.Abs() >
					c.Unsure+tt.most+60*us {
					t.Fatalf("%d: the way there is wrong by %v, the clock by at most %v", i/2, d, c.Unsure)
				}
			}
		})
	}
}

func TestCompareNothing(t *testing.T) {
	for _, all := range [][]Crossing{nil, {{1, 2, false}}, {{1, 2, true}, {3, 4, true}}} {
		if c, ok := Compare(all); ok {
			t.Errorf("%v compare as %v", all, c)
		}
	}
	if c, ok := Compare([]Crossing{{10, 30, false}, {50, 60, true}}); !ok || c.Ahead() != 15 ||
		c.Unsure != 5 || c.Here(60) != 45 {
		t.Errorf("%+v %v", c, ok)
	}
}

// TestCross divides a token's time with the server's clock on another machine.
func TestCross(t *testing.T) {
	const ahead = int64(7e9)
	s := Seen{Came: 1_000 + ahead, Departed: []int64{5_000 + ahead}, Left: []int64{4_000 + ahead},
		Wrote: []int64{3_000 + ahead}, Sent: []int64{4_500 + ahead}, Waits: []string{""},
		Events: []Event{{openai.Text{Len: 1, Hash: 9}, 30}}}
	a := &Asked{Sent: 400, Texts: []openai.Text{{Len: 1, Hash: 9}}, Read: []int64{6_500},
		Arrived: func(int64) (int64, bool) { return 6_000, true }}
	c, ok := Compare(Crossings(&s, a))
	if !ok || c.Unsure != 800 || c.Ahead() != time.Duration(ahead-200) {
		t.Fatalf("%+v %v", c, ok)
	}
	rows, missed := Divide([]Seen{c.Cross(s)}, a)
	if missed != 0 || len(rows) != 1 {
		t.Fatalf("%v, %d missed", rows, missed)
	}
	BothWays(rows)
	want := Row{0, 2_000, 1_500, 500, 1_600, 500}
	for i := range want {
		if rows[0][i] != want[i] {
			t.Errorf("%v, want %v", rows[0], want)
			break
		}
	}
	if s.Came != 1_000+ahead || s.Sent[0] != 4_500+ahead {
		t.Error("what was seen has changed")
	}
}
