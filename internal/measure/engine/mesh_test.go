package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/fake"
)

// meshBuilder builds the paths of a mesh whose first node is faulty.
type meshBuilder struct {
	*fake.Builder
	clock *fake.Clock
	pairs int
	// late is how long the faulty node takes to fail once the other pairs' ends were started; 0: it
	// does not fail.
	late time.Duration
	// unsure is the uncertainty of the faulty node's clock.
	noMetering bool
	unsure     time.Duration
	// left means that the faulty node is gone: it does not meter, and its next paths cannot be
	// built.
	left error

	mu      sync.Mutex
	changed *sync.Cond
	moved   atomic.Int64
	word    int64 // number of calls of Moved after which the channel has carried a message
	started int
	hushed  int
	rounds  []meshRound
}

type meshRound struct {
	hushes []hush
	orders [][2]int64 // from and to of all meterings
	kills  []int      // the hushes in progress
	failed int64
}

type hush struct {
	at int64
	d  time.Duration
}

const faulty = "n0"

func newMeshBuilder(nodes int) *meshBuilder {
	b := &meshBuilder{word: math.MaxInt64, Builder: &fake.Builder{}, clock: &fake.Clock{},
		pairs: nodes / 2, unsure: 100 * time.Microsecond}
	b.changed = sync.NewCond(&b.mu)
	return b
}

func (b *meshBuilder) Build(ctx context.Context, s path.Spec) (*path.Path, error) {
	bad := s.Client == faulty || s.Server == faulty
	if bad && b.late > 0 {
		return nil, b.fail(ctx)
	}
	if bad && b.left != nil && len(b.rounds) > 1 {
		return nil, fmt.Errorf("build it: %w", &path.LeftError{Node: faulty, Err: b.left})
	}
	p, err := b.Builder.Build(ctx, s)
	if err != nil {
		return nil, err
	}
	client, server := &meshNode{b, s.Client}, &meshNode{b, s.Server}
	p.Machines, p.Channel = []path.Machine{client, server}, b
	p.Clients[0].Machine, p.Clients[0].Place = client, meshPlace{p.Clients[0].Place, b}
	p.Servers[0].Machine, p.Servers[0].Place = server, meshPlace{p.Servers[0].Place, b}
	return p, nil
}

func (b *meshBuilder) fail(ctx context.Context) error {
	b.mu.Lock()
	for b.started < 2*(b.pairs-1) {
		b.changed.Wait()
	}
	b.mu.Unlock()
	time.Sleep(20 * time.Millisecond)
	if err := b.clock.Sleep(ctx, b.clock.Now()+int64(b.late)); err != nil {
		return err
	}
	b.note(func(r *meshRound) { r.failed = b.clock.Now() })
	return errors.New("it failed late")
}

func (b *meshBuilder) round() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.started = 0
	b.rounds = append(b.rounds, meshRound{})
}

func (b *meshBuilder) note(f func(*meshRound)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(&b.rounds[len(b.rounds)-1])
}

func (b *meshBuilder) Hush(_ context.Context, d time.Duration) (func(), error) {
	b.note(func(r *meshRound) {
		r.hushes = append(r.hushes, hush{b.clock.Now(), d})
		b.hushed++
	})
	return sync.OnceFunc(func() { b.note(func(*meshRound) { b.hushed-- }) }), nil
}

func (b *meshBuilder) Moved() uint64 {
	if b.moved.Add(1) > b.word {
		return 78
	}
	return 0
}

type meshNode struct {
	of   *meshBuilder
	name string
}

func (n *meshNode) Name() string { return n.name }
func (n *meshNode) Err() error {
	if n.name == faulty {
		return n.of.left
	}
	return nil
}

func (n *meshNode) Clock(context.Context) (path.Offset, error) {
	if n.name == faulty {
		return path.Offset{Unsure: n.of.unsure}, nil
	}
	return path.Offset{Unsure: 100 * time.Microsecond}, nil
}

func (n *meshNode) Meter(_ context.Context, from, to int64, _ ...int) (path.Metering, error) {
	if n.name == faulty && (n.of.noMetering || n.of.left != nil) {
		return nil, errors.New("it does not meter")
	}
	n.of.note(func(r *meshRound) { r.orders = append(r.orders, [2]int64{from, to}) })
	return func(context.Context) (path.Use, error) {
		return path.Use{CPUs: []sample.CPU{{User: 0.1, Idle: 0.1}},
			Elapsed: float64(to-from) / 1e9}, nil
	}, nil
}

type meshPlace struct {
	path.Place
	of *meshBuilder
}

func (p meshPlace) Start(c path.Command) (*path.Process, error) {
	x, err := p.Place.Start(c)
	if err != nil {
		return nil, err
	}
	p.of.note(func(*meshRound) { p.of.started++ })
	p.of.changed.Signal()
	kill := x.Kill
	x.Kill = func() error {
		p.of.note(func(r *meshRound) { r.kills = append(r.kills, p.of.hushed) })
		return kill()
	}
	return x, nil
}

func tryMesh(t *testing.T, b *meshBuilder) *sample.File {
	t.Helper()
	q := plan.MeshRequest{On: b.Name(), Mode: mode.Host,
		Loads:  []sample.Load{{Kind: "rr", Warmup: 0.1, Window: 0.25}},
		Sweeps: 1, Budget: 60, Precision: 0.02, Seed: 1}
	for i := range 2 * b.pairs {
		q.Nodes = append(q.Nodes, sample.Node{Name: fmt.Sprintf("n%d", i)})
	}
	p, err := plan.Mesh(q)
	if err != nil {
		t.Fatal(err)
	}
	var records bytes.Buffer
	_, err = engine.Run(t.Context(), engine.Config{
		Plan: p, Builders: []path.Builder{b}, Meter: fake.Meter{Clock: b.clock}, Clock: b.clock,
		Out: sample.NewWriter(&records), Progress: func(engine.Progress) { b.round() }})
	if err != nil {
		t.Fatal(err)
	}
	f, err := sample.Read(&records)
	if err != nil {
		t.Fatal(err)
	}
	if b.Open != 0 || b.hushed != 0 || len(f.Pairs) != b.pairs*(2*b.pairs-1) {
		t.Fatalf("%d paths are open, %d hushes go on, %d visits", b.Open, b.hushed, len(f.Pairs))
	}
	return f
}

func meshFailures(t *testing.T, f *sample.File, want string) {
	t.Helper()
	for _, v := range f.Pairs {
		says := ""
		if v.Pair[0] == 0 || v.Pair[1] == 0 {
			says = want
		}
		if v.Failure != says {
			t.Errorf("pair %v says %q, want %q", v.Pair, v.Failure, says)
		}
	}
}

// The other pairs begin only when the late one has failed. Only then is the channel hushed, once.
func TestPairThatFailsLate(t *testing.T) {
	b := newMeshBuilder(6)
	b.late = 10 * time.Second
	meshFailures(t, tryMesh(t, b), "it failed late")
	for i, r := range b.rounds {
		if len(r.hushes) != 1 || len(r.orders) != 4 {
			t.Fatalf("round %d: %+v", i, r)
		}
		h := r.hushes[0]
		if h.at < r.failed {
			t.Errorf("round %d: hushed %s before the late one failed", i,
				time.Duration(r.failed-h.at))
		}
		for _, o := range r.orders {
			start := o[0] - int64(100*time.Millisecond)
			if o != r.orders[0] || start < r.failed || o[1]-o[0] != int64(250*time.Millisecond) {
				t.Errorf("round %d: a window from %d to %d, after a failure at %d; another from %d",
					i, o[0], o[1], r.failed, r.orders[0][0])
			}
			if o[1] > h.at+int64(h.d) {
				t.Errorf("round %d: the hush is over %s before the window", i,
					time.Duration(o[1]-h.at-int64(h.d)))
			}
		}
	}
}

func TestPairsAreToldInTime(t *testing.T) {
	leads := map[int]time.Duration{}
	for _, nodes := range []int{4, 16} {
		b := newMeshBuilder(nodes)
		tryMesh(t, b)
		r := b.rounds[0]
		leads[nodes] = time.Duration(r.orders[0][0] - r.hushes[0].at)
	}
	const more = 12 * 300 * time.Microsecond
	if got := leads[16] - leads[4]; got != more {
		t.Errorf("%s more for 6 more pairs, not %s", got, more)
	}
}

// A pair that fails at the barrier must not use the channel before the others' windows are over.
func TestPairThatFailsAtTheMuster(t *testing.T) {
	b := newMeshBuilder(6)
	b.noMetering = true
	meshFailures(t, tryMesh(t, b), "it does not meter")
	for i, r := range b.rounds {
		if len(r.hushes) != 1 || len(r.kills) != 2 {
			t.Fatalf("round %d: %+v", i, r)
		}
		for _, hushes := range r.kills {
			if hushes > 0 {
				t.Errorf("round %d: an end was killed in the others' windows", i)
			}
		}
	}
	b = newMeshBuilder(6)
	b.unsure = 200 * time.Millisecond
	meshFailures(t, tryMesh(t, b), "the machines' clocks are only known to ± 0.4 s, too "+
		"coarsely for a warm-up of 0.1 s "+
		"and a window of 0.25 s")
	for i, r := range b.rounds {
		if len(r.kills) != 2 || len(r.orders) != 4 || r.kills[0]+r.kills[1] > 0 {
			t.Errorf("round %d: %+v", i, r)
		}
	}
}

func TestNodeThatLeft(t *testing.T) {
	for _, left := range []error{errors.New("node n0 left: it gave no answer for 15 s"), nil} {
		b := newMeshBuilder(4)
		b.left, b.noMetering = left, true
		for _, v := range tryMesh(t, b).Pairs {
			want := ""
			if left != nil && (v.Pair[0] == 0 || v.Pair[1] == 0) {
				want = faulty
			}
			if v.Left != want {
				t.Errorf("pair %v in round %d: %q left, not %q (%s)", v.Pair, v.Round, v.Left, want,
					v.Failure)
			}
		}
	}
}

func TestPairsAreRepeatedWhenTheChannelSpoke(t *testing.T) {
	b := newMeshBuilder(4)
	b.word = 3 // the fourth call is at the end of the last window of two pairs
	for _, v := range tryMesh(t, b).Pairs {
		if v.Failure != "" {
			t.Errorf("pair %v in round %d: %s", v.Pair, v.Round, v.Failure)
		}
	}
	for i, r := range b.rounds {
		if want := 1 + max(0, 1-i); len(r.hushes) != want {
			t.Errorf("round %d was visited %d times, not %d", i, len(r.hushes), want)
		}
	}
}
