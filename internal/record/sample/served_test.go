package sample

import (
	"bytes"
	"encoding/json"
	"testing"
)

func answeredOnce() *Served {
	part := ServedPart{Part: EvidenceServer, Mean: 1e-3, P50: 1e-3, P99: 1e-3, Max: 1e-3}
	one := Answered{At: 1, Whole: 1e-3, Parts: []float64{1e-3}, Client: &[2]float64{1e-6, 2e-6}}
	return &Served{Schema: ServedSchema, Command: []string{"trace", "--attach", "1"},
		Server: EvidenceHop{Process: "redis", Port: 1}, Elapsed: 2, Followed: 2, Requests: 1,
		Connections: 1, Whole: part, Parts: []ServedPart{part}, Median: &one,
		Slowest: []Answered{one}}
}

func TestReadServed(t *testing.T) {
	want, err := json.Marshal(answeredOnce())
	if err != nil {
		t.Fatal(err)
	}
	s, err := ReadServed(bytes.NewReader(want))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(s); err != nil || !bytes.Equal(got, want) {
		t.Errorf("read as %s, %v", got, err)
	}
	for name, spoil := range map[string]func(*Served){
		"schema":           func(s *Served) { s.Schema = "bridgetoll.requests/9" },
		"parts":            func(s *Served) { s.Slowest[0].Parts = nil },
		"parts of the p99": func(s *Served) { s.Tail = []float64{1, 2} },
		"median":           func(s *Served) { s.Median = &Answered{} },
		"time":             func(s *Served) { s.Parts[0].Max = -1 },
		"client's time":    func(s *Served) { s.Median.Client[0] = -1 },
		"client":           func(s *Served) { s.Client = &ServedClient{} },
		"followed":         func(s *Served) { s.Followed = 0 },
		"requests":         func(s *Served) { s.Requests = -1 },
		"many":             func(s *Served) { s.Slowest = make([]Answered, 1000) },
	} {
		s := answeredOnce()
		spoil(s)
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ReadServed(bytes.NewReader(text)); err == nil {
			t.Errorf("%s: read %s", name, text)
		}
	}
	s = answeredOnce()
	s.Server.Process = "\x1b[2Jredis"
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	s, err = ReadServed(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Server.Process, `\x1b[2Jredis`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestServedRate(t *testing.T) {
	s := answeredOnce()
	if got := s.Rate(); got != 0.5 {
		t.Errorf("one request in 2 s is %v a second", got)
	}
	s.Spells, s.Estimated, s.Followed = 3, 40, 0.1 // a busy spell is short
	if got := s.Rate(); got != 20 {
		t.Errorf("40 requests in 2 s are %v a second", got)
	}
}
