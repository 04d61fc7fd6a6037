package tokens

import (
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
)

func TestStream(t *testing.T) {
	type packet struct {
		at  int64
		seq uint32
		say string
	}
	const base = 0xffff_fffa // sequence numbers wrap
	for name, tt := range map[string]struct {
		packets []packet
		says    string
		ends    []int64
		ats     []int64
	}{
		"in order":       {[]packet{{1, 0, "abc"}, {2, 3, "defghi"}}, "abcdefghi", []int64{3, 9}, []int64{1, 2}},
		"sent again":     {[]packet{{1, 0, "abc"}, {2, 0, "abc"}, {3, 3, "d"}}, "abcd", []int64{3, 4}, []int64{1, 3}},
		"out of order":   {[]packet{{1, 6, "ghi"}, {2, 3, "def"}, {3, 0, "abc"}}, "abcdefghi", []int64{3, 6, 9}, []int64{3, 2, 1}},
		"overlapping":    {[]packet{{1, 0, "abc"}, {2, 1, "bcde"}, {3, 4, "efg"}}, "abcdefg", []int64{3, 5, 7}, []int64{1, 2, 3}},
		"with a hole":    {[]packet{{1, 0, "abc"}, {2, 4, "efg"}}, "abc", []int64{3}, []int64{1}},
		"older bytes":    {[]packet{{1, 0xffff_fff0, "xyz"}, {2, 0, "abc"}}, "abc", []int64{3}, []int64{2}},
		"hole is filled": {[]packet{{1, 2, "c"}, {2, 2, "c"}, {3, 0, "abcd"}}, "abcd", []int64{4}, []int64{3}},
	} {
		var s stream
		s.begin(base)
		var says []byte
		for _, p := range tt.packets {
			s.add(&capture.Packet{At: p.at, Seq: base + p.seq, Payload: []byte(p.say)},
				func(b []byte) { says = append(says, b...) })
		}
		var ends, ats []int64
		for _, m := range s.marks {
			ends, ats = append(ends, m.end), append(ats, m.at)
		}
		if string(says) != tt.says || !slices.Equal(ends, tt.ends) || !slices.Equal(ats, tt.ats) {
			t.Errorf("%s: %q, ends %v at %v", name, says, ends, ats)
		}
	}
}

func TestStreamAt(t *testing.T) {
	var s stream
	s.begin(7)
	s.add(&capture.Packet{At: 10, Seq: 7, TSVal: 1, Payload: []byte("abc")}, func([]byte) {})
	s.add(&capture.Packet{At: 20, Seq: 10, TSVal: 2, Size: 3}, nil)
	for offset, want := range map[int64]int64{1: 10, 3: 10, 4: 20, 6: 20, 7: 0} {
		m, ok := s.at(offset)
		if ok != (want > 0) || ok && m.at != want {
			t.Errorf("%d: %+v %t", offset, m, ok)
		}
	}
}

// Of several copies of a byte, the client took the last one before it acknowledged the byte, and
// bytes are readable when all before them are.
func TestArrivals(t *testing.T) {
	type event struct {
		at         int64
		start, end uint32
		ack        bool
	}
	for name, tt := range map[string]struct {
		events []event
		at     map[int64]int64
	}{
		"in order": {[]event{{1, 0, 10, false}, {2, 0, 10, true}, {3, 10, 20, false}}, map[int64]int64{1: 1, 10: 1, 11: 3, 20: 3, 21: 0}},
		"the first copy was dropped": {[]event{{1, 0, 10, false}, {5, 0, 10, false}, {6, 0, 10, true}},
			map[int64]int64{10: 5}},
		"a copy after the acknowledgement": {[]event{{1, 0, 10, false}, {2, 0, 10, true},
			{5, 0, 10, false}}, map[int64]int64{10: 1}},
		"a hole is filled": {[]event{{1, 10, 20, false}, {5, 0, 10, false}, {6, 0, 20, true}},
			map[int64]int64{10: 5, 20: 5}},
		"a hole":       {[]event{{1, 0, 10, false}, {2, 11, 20, false}}, map[int64]int64{10: 1, 11: 0, 20: 0}},
		"joined later": {[]event{{1, 0, 10, false}, {2, 10, 20, false}, {9, 0, 20, false}, {10, 0, 20, true}}, map[int64]int64{10: 9, 20: 9}},
	} {
		const base = 0xffff_fffb
		var a arrivals
		a.begin(base)
		for _, e := range tt.events {
			if e.ack {
				a.acknowledge(e.at, base+e.end)
			} else {
				a.add(e.at, base+e.start, int(e.end-e.start))
			}
		}
		for offset, want := range tt.at {
			if got, ok := a.at(offset); ok != (want > 0) || got != want {
				t.Errorf("%s: byte %d at %d, want %d", name, offset, got, want)
			}
		}
	}
}
