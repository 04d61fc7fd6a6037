package endpoint

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/bridgetoll/bridgetoll/internal/measure/database"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// SQL visits the endpoints of a database.
type SQL struct {
	Locate    Locate // nil: unknown
	names     []string
	endpoints map[string]*database.Database
	facts     map[string]sample.Path
	from      map[string]*vantage.Vantage
	dials     map[string]*dials
	servers   servers
}

// newSQL parses the DSNs; it does not connect.
func newSQL(at []Address, o database.Options) (*SQL, error) {
	s := &SQL{endpoints: map[string]*database.Database{}, facts: map[string]sample.Path{},
		from: map[string]*vantage.Vantage{}, dials: map[string]*dials{}, servers: servers{}}
	for _, w := range at {
		s.from[w.Name], s.dials[w.Name] = w.place(), &dials{}
		o.Dial = s.dials[w.Name].counted(w.dialler())
		o.LookUp = s.dials[w.Name].looking(w.lookUps())
		d, err := database.New(w.URL, o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.Name, err)
		}
		s.names, s.endpoints[w.Name] = append(s.names, w.Name), d
	}
	return s, nil
}

// Names returns the endpoints' names in order.
func (s *SQL) Names() []string { return s.names }

// Check reads a page from each endpoint.
func (s *SQL) Check(ctx context.Context) error {
	for _, name := range s.names {
		d := s.endpoints[name]
		began := time.Now()
		f, err := d.Probe(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		facts := map[string]string{"url": d.String(), "server": f.Server}
		for fact, value := range map[string]string{"tls": f.TLS, "from": elsewhere(s.from[name]),
			familyFact: family(f.Remote), sample.FactUnanswered: s.dials[name].unanswered()} {
			if value != "" {
				facts[fact] = value
			}
		}
		evidence, err := exchanges(ctx, s.from[name], f.Remote, facts, func() error {
			return pages(ctx, d)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.servers.find(ctx, s.Locate, name, f.Remote, s.from[name], facts)
		s.servers.handles(name, evidence, facts)
		s.facts[name] = sample.Path{Route: name, From: sample.FromHere, On: sample.OnEndpoint,
			Dial: f.Remote, Hops: []string{},
			Built: time.Since(began).Seconds(), Facts: facts, Evidence: evidence}
	}
	return nil
}

// pages reads pages for a while, over a connection of its own.
func pages(ctx context.Context, d *database.Database) error {
	const while = 500 * time.Millisecond
	s, err := d.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	for began := time.Now(); time.Since(began) < while; {
		if _, err := s.Page(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// Close does nothing.
func (s *SQL) Close() error { return nil }

// Paths describes the endpoints after Check.
func (s *SQL) Paths() []sample.Path { return paths(s.names, s.facts) }

type browse struct {
	mu           sync.Mutex
	page, query  *hdrhistogram.Histogram
	party        sample.Party
	rate         float64 // queries per second of all sessions, whose windows differ
	connect, rtt []float64
	suspects     suspects
}

// Visit opens l.Streams sessions. Each reads pages during the warm-up, at least one, and then until
// the window is over. The pages that began in the window count; the last one is completed.
func (s *SQL) Visit(ctx context.Context, cell sample.Cell, l sample.Load, v *sample.Visit) error {
	b := &browse{page: sample.NewHistogram(), query: sample.NewHistogram()}
	n, before := max(1, l.Streams), strainsOf(s.from[cell.Route], s.servers[cell.Route])
	together := s.servers.watch(os.Getpid(), cell.Route)
	s.dials[cell.Route].begin()
	defer func() {
		v.Together = together()
		s.dials[cell.Route].note(v)
	}()
	sessions := make([]*database.Session, n)
	defer func() {
		for _, session := range sessions {
			if session != nil {
				_ = session.Close()
			}
		}
	}()
	err := atOnce(ctx, n, func(ctx context.Context, i int) (err error) {
		sessions[i], err = s.endpoints[cell.Route].Open(ctx)
		return err
	})
	if err != nil {
		return err
	}
	start := time.Now().Add(seconds(l.Warmup))
	until := start.Add(seconds(l.Window))
	err = atOnce(ctx, n, func(ctx context.Context, i int) error {
		return b.read(ctx, sessions[i], start, until)
	})
	if err != nil {
		return err
	}
	if b.rate > 0 {
		b.party.Window = float64(b.party.Trips) / b.rate
	}
	b.party.Connections, b.party.TCP.RTT = n, median(b.rtt)
	v.Client, v.Server = b.party, sample.Party{Window: b.party.Window}
	v.Values = map[string]float64{"connect": median(b.connect)}
	b.suspects.note(v)
	before.note(v)
	if v.Latency, err = sample.Encode(b.page); err != nil {
		return err
	}
	v.Times, err = encoded(map[string]*hdrhistogram.Histogram{"query": b.query})
	return err
}

func (b *browse) read(ctx context.Context, s *database.Session, from, until time.Time) error {
	// A session prepares the query on its first page, which is before the window even if the warm-up
	// is over.
	for first := true; first || time.Now().Before(from); first = false {
		if _, err := s.Page(ctx, nil); err != nil {
			return err
		}
	}
	var pages, queries []time.Duration
	sent, received := s.Bytes()
	began := time.Now()
	for time.Now().Before(until) || len(pages) == 0 {
		page, err := s.Page(ctx, func(q time.Duration) { queries = append(queries, q) })
		if err != nil {
			return err
		}
		pages = append(pages, page)
	}
	took := time.Since(began)
	sentNow, receivedNow := s.Bytes()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range pages {
		record(b.page, p)
	}
	for _, q := range queries {
		record(b.query, q)
	}
	b.rate += float64(len(queries)) / took.Seconds()
	b.party.Trips += int64(len(queries))
	b.party.Sent += sentNow - sent
	b.party.Received += receivedNow - received
	b.connect = append(b.connect, s.Connect.Seconds())
	b.rtt = append(b.rtt, s.RTT().Seconds())
	sentSegments, resent, outOfOrder := s.Lost()
	b.suspects.sent += int64(sentSegments)
	b.suspects.resent += int64(resent)
	b.suspects.outOfOrder += int64(outOfOrder)
	if took := s.LookUp(); took > 0 {
		b.suspects.lookUps = append(b.suspects.lookUps, took.Seconds())
	}
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
