package workload

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestAxesAreOptions(t *testing.T) {
	used := map[string]bool{}
	for _, w := range all {
		for _, f := range w.Flags {
			if w.Gist == "" || f.With != "" {
				continue
			}
			switch f.Value.(type) {
			case Whole, Number, Size, Rate:
				if _, ok := AxisOf(f.Name); !ok {
					t.Errorf("%s's --%s is a number and no axis", w.Name, f.Name)
				}
				used[f.Name] = true
			}
		}
	}
	for _, a := range axes {
		if !used[a.Name] {
			t.Errorf("axis %s is no option of any load", a.Name)
		}
	}
}

func TestSweepGivesTheValue(t *testing.T) {
	for _, c := range []struct {
		load, axis, text, name, words string
		get                           func(l sample.Load) float64
	}{
		{RR, "request", "16k", "16k", "16 KiB", func(l sample.Load) float64 {
			return float64(MessagesOf(l).Request) / 1024 * 1024
		}},
		{RR, "request", "1024", "1k", "1 KiB", func(l sample.Load) float64 {
			return float64(MessagesOf(l).Request)
		}},
		{RR, "rate", "500", "500", "500/s", func(l sample.Load) float64 { return RROf(l).Rate }},
		{RR, "connections", "4", "4", "4", func(l sample.Load) float64 {
			return float64(l.Streams)
		}},
		{Bulk, "streams", "8", "8", "8", func(l sample.Load) float64 { return float64(l.Streams) }},
		{Bulk, "write-size", "64k", "64k", "64 KiB", func(l sample.Load) float64 {
			return float64(BulkOf(l).Write)
		}},
		{UDP, "datagram", "1400", "1400", "1400 B", func(l sample.Load) float64 {
			return float64(UDPOf(l).Size)
		}},
		{UDP, "bitrate", "500mbit", "500mbit", "500 Mbit/s", func(l sample.Load) float64 {
			return UDPOf(l).Rate
		}},
		{Stream, "sessions", "20", "20", "20", func(l sample.Load) float64 {
			return float64(l.Streams)
		}},
	} {
		t.Run(c.load+"-"+c.axis+"-"+c.text, func(t *testing.T) {
			w, _ := Find(c.load)
			a, _ := AxisOf(c.axis)
			x, err := a.Parse(c.text)
			if err != nil {
				t.Fatal(err)
			}
			l := w.New()
			if err := w.Sweep(&l, a, x); err != nil {
				t.Fatal(err)
			}
			if got := c.get(l); got != x || a.Format(x) != c.name || a.Words(x) != c.words {
				t.Errorf("%s is %g, %q, %q; the load has %g", c.text, x, a.Format(x), a.Words(x),
					got)
			}
		})
	}
}

func TestSweepRefuses(t *testing.T) {
	for _, c := range []struct {
		load, axis string
		x          float64
	}{{RR, "request", 0}, {RR, "request", MaxMessage + 1}, {RR, "rate", 0}, {Bulk, "request", 1},
		{UDP, "datagram", 63}, {Bulk, "streams", maxStreams + 1}} {
		w, _ := Find(c.load)
		a, _ := AxisOf(c.axis)
		l := w.New()
		if err := w.Sweep(&l, a, c.x); err == nil {
			t.Errorf("%s takes %s=%g", c.load, c.axis, c.x)
		}
	}
	for axis, text := range map[string]string{"request": "many", "streams": "1.5", "rate": "NaN",
		"bitrate": "7"} {
		a, _ := AxisOf(axis)
		if _, err := a.Parse(text); err == nil {
			t.Errorf("%s takes %q", axis, text)
		}
	}
}
