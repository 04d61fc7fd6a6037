package tokens

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// texts returns the texts up to each of some pieces.
func texts(pieces ...string) (out []openai.Text) {
	var t openai.Reader
	for _, p := range pieces {
		t.Add(fmt.Appendf(nil, `{"choices":[{"text":%q}]}`, p))
		out = append(out, t.Text)
	}
	return out
}

// hopOf returns what a hop saw of a request that came at a time. Each event ends 10 bytes after the
// one before.
func hopOf(came int64, departed []int64, pieces ...string) Seen {
	s := Seen{Mark: theMark, ByID: true, Came: came, Departed: departed}
	for i, t := range texts(pieces...) {
		s.Events = append(s.Events, Event{t, int64(i+1) * 10})
	}
	return s
}

func askedFor(sent int64, read []int64, pieces ...string) *Asked {
	return &Asked{Mark: theMark, Sent: sent, Texts: texts(pieces...), Read: read,
		Arrived: func(offset int64) (int64, bool) {
			i := int(offset/10) - 1 // a unit before it was read
			if i >= len(read) {
				return 0, false
			}
			return read[i] - 1, true
		}}
}

func TestDivide(t *testing.T) {
	for name, tt := range map[string]struct {
		chain     []Seen
		asked     *Asked
		want      []Row
		unmatched int
	}{
		"direct": {[]Seen{hopOf(110, []int64{150, 160}, "a", "b")}, askedFor(100, []int64{155, 171}, "a", "b"),
			[]Row{{10, 40, 0, 0, 4, 1}, {10, 50, 0, 0, 10, 1}}, 0},
		"a relay merges": {[]Seen{hopOf(110, []int64{150, 160, 170}, "a", "b", "c"),
			hopOf(105, []int64{165, 175}, "ab", "c")}, askedFor(100, []int64{167, 180}, "ab", "c"),
			[]Row{{5, 40, 0, 0, 20, 1, 1}, {5, 50, 0, 0, 10, 1, 1}, {5, 60, 0, 0, 10, 4, 1}}, 0},
		"a relay splits": {[]Seen{hopOf(110, []int64{150}, "abc"), hopOf(105, []int64{155, 157, 160}, "a", "b", "c")},
			askedFor(100, []int64{160, 165, 170}, "a", "b", "c"), []Row{{5, 40, 0, 0, 15, 9, 1}}, 0},
		"a relay changes the text": {[]Seen{hopOf(110, []int64{150, 160, 170}, "a", "b", "c"),
			hopOf(105, []int64{155, 165, 175}, "a", "b", "X")}, askedFor(100, []int64{157, 167, 177}, "a", "b", "X"),
			[]Row{{5, 40, 0, 0, 10, 1, 1}, {5, 50, 0, 0, 10, 1, 1}}, 1},
		"other text": {[]Seen{hopOf(110, []int64{150}, "a")}, askedFor(100, []int64{155}, "b"), nil, 1},
		"the client stops": {[]Seen{hopOf(110, []int64{150, 160}, "a", "b")}, askedFor(100, []int64{155}, "a"),
			[]Row{{10, 40, 0, 0, 4, 1}}, 1},
	} {
		got, unmatched := Divide(tt.chain, tt.asked)
		if !slices.EqualFunc(got, tt.want, slices.Equal) || unmatched != tt.unmatched {
			t.Errorf("%s: %v, %d unmatched; want %v", name, got, unmatched, tt.want)
		}
	}
	late := askedFor(100, []int64{155}, "a")
	late.Arrived = func(int64) (int64, bool) { return 0, false }
	if rows, unmatched := Divide([]Seen{hopOf(110, []int64{150}, "a")}, late); rows != nil ||
		unmatched != 1 {
		t.Errorf("without the arrival: %v, %d", rows, unmatched)
	}
}

// TCP's timestamps tell when a packet waited in the device's queue, to 1 ms.
func TestDivideQueue(t *testing.T) {
	const ms = 1_000_000
	s := hopOf(10*ms, []int64{50 * ms, 60 * ms}, "a", "b")
	s.Left = []int64{40 * ms, 59 * ms}
	rows, _ := Divide([]Seen{s}, askedFor(0, []int64{50*ms + 2, 60*ms + 2}, "a", "b"))
	if want := []Row{{10 * ms, 30 * ms, 0, 10 * ms, 1, 1}, {10 * ms, 50 * ms, 0, 0, 1, 1}}; !slices.EqualFunc(
		rows,
		want,
		slices.Equal,
	) {
		t.Errorf("%v, want %v", rows, want)
	}
}

func TestPair(t *testing.T) {
	other := hopOf(110, []int64{150}, "a")
	other.Mark = 7
	seed := hopOf(120, []int64{150}, "a")
	seed.ByID = false
	none := hopOf(130, []int64{150}, "a")
	none.Mark, none.ByID = 0, false
	aside := hopOf(105, nil)
	aside.Reply = Aside
	plain := hopOf(105, nil)
	plain.Reply = Plain
	for name, tt := range map[string]struct {
		seen  []Seen
		mark  uint32
		index int
		how   How
	}{
		"nothing":   {nil, theMark, -1, Unknown},
		"by ID":     {[]Seen{none, other, hopOf(110, []int64{150}, "b")}, theMark, 2, ByID},
		"by seed":   {[]Seen{other, seed}, theMark, 1, BySeed},
		"no mark":   {[]Seen{none}, 0, -1, Unknown},
		"unmatched": {[]Seen{none, other}, theMark, -1, Unknown},
		"no stream": {[]Seen{aside, plain}, theMark, -1, Unknown},
		"asked again": {[]Seen{hopOf(105, []int64{150}, "a"), hopOf(110, []int64{150}, "b"),
			hopOf(115, nil)}, theMark, 1, ByID},
		"asked twice": {[]Seen{hopOf(105, []int64{140}, "b"), hopOf(106, []int64{158}, "b"),
			hopOf(107, []int64{150}, "b")}, theMark, 1, ByID},
	} {
		a := askedFor(100, []int64{160}, "b")
		a.Mark = tt.mark
		if i, how := Pair(tt.seen, a); i != tt.index || how != tt.how {
			t.Errorf("%s: %d, %v", name, i, how)
		}
	}
}

func TestPairByText(t *testing.T) {
	const ms = 1_000_000
	seen := func(came, departed int64, text string) Seen {
		s := hopOf(came*ms, []int64{departed * ms}, text)
		s.Mark, s.ByID = 0, false
		return s
	}
	asked := func(sent, read int64) *Asked { return askedFor(sent*ms, []int64{read * ms}, "a") }
	marked := hopOf(101*ms, []int64{154 * ms}, "a")
	for name, tt := range map[string]struct {
		seen []Seen
		all  []*Asked
		want []int
	}{
		"the latest that fits": {[]Seen{seen(101, 150, "b"), seen(102, 150, "a"), seen(103, 154, "a"),
			seen(104, 156, "a"), seen(90, 155, "a"), marked}, []*Asked{asked(100, 155)}, []int{2}},
		"none": {[]Seen{marked, seen(101, 150, "b")}, []*Asked{asked(100, 155)}, []int{-1}},
		// The first would take the only one that the second can be.
		"as many as possible": {[]Seen{seen(101, 150, "a"), seen(102, 154, "a")},
			[]*Asked{asked(100, 155), asked(102, 154)}, []int{0, 1}},
		"one is missing": {[]Seen{seen(101, 150, "a")},
			[]*Asked{asked(100, 155), asked(100, 155)}, []int{0, -1}},
	} {
		if got := PairByText(tt.seen, tt.all); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// rowsOf returns rows with a relay from the gaps of the server and what the relay holds.
func rowsOf(gaps, holds []int64) (rows []Row) {
	const ms = 1_000_000
	at := int64(50)
	for i, g := range gaps {
		at += g
		rows = append(rows, Row{1 * ms, at * ms, 0, 0, holds[i] * ms, 0, 1 * ms})
	}
	return rows
}

func TestSums(t *testing.T) {
	for name, tt := range map[string]struct {
		gaps, holds []int64
		slow        int
		excess      float64
		server      float64 // its share
	}{
		"steady":       {[]int64{0, 20, 20, 20, 20}, []int64{1, 1, 1, 1, 1}, 0, 0, 0},
		"the server":   {[]int64{0, 20, 120, 20, 20}, []int64{1, 1, 1, 1, 1}, 1, 0.100, 1},
		"the relay":    {[]int64{0, 20, 20, 20, 20}, []int64{1, 1, 61, 41, 21}, 1, 0.060, 0},
		"both":         {[]int64{0, 20, 60, 20, 20, 20}, []int64{1, 1, 61, 61, 61, 61}, 1, 0.100, 0.4},
		"relay merges": {[]int64{0, 20, 20, 20, 20, 20}, []int64{41, 21, 1, 41, 21, 1}, 1, 0.040, 0},
		// Half of the gaps are 0, and the median is one of the others.
		"relay pairs":  {[]int64{0, 20, 20, 20, 20}, []int64{21, 1, 21, 1, 21}, 2, 0.040, 0},
		"server pairs": {[]int64{0, 0, 40, 0, 40}, []int64{1, 1, 1, 1, 1}, 2, 0.040, 1},
		"relay hides":  {[]int64{0, 4, 4, 40, 4, 4}, []int64{60, 76, 92, 72, 88, 104}, 0, 0, 0},
	} {
		s := NewSums(1)
		s.Add(rowsOf(tt.gaps, tt.holds), 0)
		s.Add(nil, 0)
		var e sample.Evidence
		s.Note(&e)
		share := 0.0
		if e.Excess > 0 {
			share = e.Parts[Server].Excess / e.Excess
		}
		if e.Slow != tt.slow || math.Abs(e.Excess-tt.excess) > 1e-9 ||
			math.Abs(share-tt.server) > 1e-9 {
			t.Errorf("%s: %d slow gaps, %v s, the server's part %v", name, e.Slow, e.Excess, share)
		}
		sum := 0.0
		for _, p := range e.Parts {
			sum += p.Last
		}
		rows := rowsOf(tt.gaps, tt.holds)
		if want := seconds(rows[len(rows)-1].total()); math.Abs(sum-want) > 1e-9 {
			t.Errorf("%s: the parts are %v s, of %v", name, sum, want)
		}
		if r := e.Parts[relays]; r.Part != sample.EvidenceRelay || r.Hop != 1 ||
			len(e.Parts) != relays+3 {
			t.Errorf("%+v", e.Parts)
		}
	}
}

func TestNoteEpochs(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, 3: 3, 10: 10, 23: 10, 2000: 10} {
		s := NewSums(0)
		for i := range n { // the server slows down
			s.Add([]Row{{1, 1, 1, 1, 1, 1}, {1, int64(i), 1, 1, 1, 1}}, 0)
		}
		e := sample.Evidence{Parts: make([]sample.EvidencePart, relays+2)}
		s.NoteEpochs(&e)
		got := e.Parts[Server].Epochs
		if len(got) != want || !slices.IsSorted(got) {
			t.Fatalf("%d exchanges: %v", n, got)
		}
		if n > 0 && (got[0] > seconds(int64(n/want)) || got[want-1] < seconds(int64(n-1-n/want))) {
			t.Errorf("%d exchanges: the first and the last epoch of %v", n, got)
		}
	}
}

func TestMiddleResponse(t *testing.T) {
	const ms = int64(time.Millisecond)
	s := NewSums(0)
	for _, last := range []int64{900, 500, 100} { // of responses with 401, 402 and 403 tokens
		var rows []Row
		n := 400 + len(s.responses) + 1
		for i := range n {
			at := last * ms * int64(i+1) / int64(n)
			rows = append(rows, Row{ms, at, 2 * ms, 0, ms, ms})
		}
		s.Add(rows, 7*ms) // until the server had the request
	}
	var e sample.Evidence
	s.Note(&e)
	r := e.Response
	if r == nil || r.Tokens != 402 || len(r.Read) != sample.MostTokenPoints ||
		len(r.Written) != len(r.Read) || r.Token(0) != 1 || r.Token(len(r.Read)-1) != 402 {
		t.Fatalf("%+v", r)
	}
	end := len(r.Read) - 1
	if !slices.IsSorted(r.Read) || math.Abs(r.Written[end]-0.508) > 1e-9 ||
		math.Abs(r.Read[end]-0.505) > 1e-9 ||
		!slices.Equal(r.Last, []float64{0.001, 0.5, 0.002, 0, 0.001, 0.001}) {
		t.Errorf("%v, %v, %v", r.Written[end], r.Read[end], r.Last)
	}
	if (&Sums{}).middle() != nil {
		t.Error("a response of none")
	}
	one := &sample.EvidenceResponse{Tokens: 1, Read: []float64{1}}
	if one.Token(0) != 1 {
		t.Errorf("the only token is number %d", one.Token(0))
	}
}
