package cli

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/documenttest"
	"github.com/bridgetoll/bridgetoll/internal/testing/fake"
)

// fakeEnv replaces this binary's lab by one without a kernel.
const fakeEnv = "TOLL_TEST_FAKE"

// fakeBusyEnv lists how many of two CPUs other programs keep busy, one number per sample; the last
// one repeats. Without it the CPUs are free.
const fakeBusyEnv = "TOLL_TEST_BUSY"

// fakeBrokenEnv lists modes that pass the check and fail while they are built.
const fakeBrokenEnv = "TOLL_TEST_BROKEN"

// fakeUntracedEnv is what the kernel lacks for tracing; "": nothing.
const fakeUntracedEnv = "TOLL_TEST_UNTRACED"

func scriptedContention() func(func() float64) func() sample.Contention {
	left := strings.Split(cmp.Or(os.Getenv(fakeBusyEnv), "0"), ",")
	return func(func() float64) func() sample.Contention {
		return func() sample.Contention {
			others, err := strconv.ParseFloat(left[0], 64)
			if err != nil {
				panic(err)
			}
			left = left[min(1, len(left)-1):]
			pressure := others / 2
			return sample.Contention{Elapsed: 1, CPUs: 2, Others: &others, Pressure: &pressure,
				LoadAverage: 20 * others}
		}
	}
}

func fakeLab() {
	congestionHere = func() string { return "" }
	placeCPUs = func(pin string, _ int) (sample.CPUs, error) {
		if pin == sample.PinNear {
			return sample.CPUs{Client: []int{0}, Server: []int{0}, Relay: []int{0}, SameCore: true,
				Distance: sample.SharedCPU}, nil
		}
		return sample.CPUs{Client: []int{0}, Server: []int{1}, Distance: sample.SharedCache}, nil
	}
	checkHooks = func() error { return nil }
	openTracer = func(bool) (engine.Tracer, func() error, error) {
		if missing := os.Getenv(fakeUntracedEnv); missing != "" {
			return nil, nil, &machine.UnsupportedError{Missing: missing, Remedy: "toll ladder"}
		}
		return nil, func() error { return nil }, nil
	}
	contentionSince = scriptedContention()
	printing = mustFit
	for i, b := range backends {
		if b.name == sample.Lab {
			backends[i].settings = func(f *builderFlags) settings {
				return fakeSettings{b.settings(f)}
			}
		}
	}
}

// mustFit panics if a document does not fit 60 columns or more, or contradicts its verdicts.
func mustFit(d document.Document) {
	if said := documenttest.Contradictions(d); len(said) > 0 {
		panic(strings.Join(said, "\n"))
	}
	table, _ := format.Find("table")
	for _, columns := range documenttest.Widths {
		var b strings.Builder
		if err := table.Write(&b, d, format.Options{Width: columns}); err != nil {
			panic(err)
		}
		if misfits := documenttest.Misfits(d, b.String(), columns); len(misfits) > 0 {
			panic(strings.Join(misfits, "\n") + "\nin:\n" + b.String())
		}
	}
}

type fakeSettings struct{ settings }

func (fakeSettings) with(_ context.Context, _ sample.Wire, use func(path.Builder) error) error {
	return use(catalogued{&fake.Builder{Rate: leveredRate}})
}

// fakeSpeedEnv is a factor for the speed of all paths: another state of the machine.
const fakeSpeedEnv = "TOLL_TEST_SPEED"

// leveredRate models a machine on which BIG TCP helps incoming traffic if set on the bridge, and
// slows outgoing traffic if set on the containers' ends. On a rootless engine NAT is faster than
// docker-proxy on the way in, and large packets are on the way out.
func leveredRate(s path.Spec, load string, _ int) float64 {
	x := fake.DefaultRate
	if speed, err := strconv.ParseFloat(os.Getenv(fakeSpeedEnv), 64); err == nil {
		x *= speed
	}
	if s.Mode == mode.RootlessPublishNAT && s.From == mode.FromHost {
		x *= 1.8
	}
	if _, ok := s.Tune.Get(mode.MTU); ok && s.To.Outside() {
		x *= 2
	}
	if _, ok := s.Tune.Get(mode.BigTCP); ok && load == workload.Bulk && s.From == mode.FromHost {
		x *= 1.2
	}
	if _, ok := s.Tune.Get(mode.BigTCPContainer); ok && load == workload.BulkReverse {
		x *= map[mode.Placement]float64{mode.FromHost: 1.15, mode.FromContainer: 1.1,
			mode.FromRemote: 0.5}[s.From]
	}
	return x
}

// The clock is fake, so nothing waits.
type catalogued struct{ *fake.Builder }

var _ timed = catalogued{}

func (catalogued) Time() (engine.Clock, engine.Meter) {
	c := &fake.Clock{}
	return c, fake.Meter{Clock: c}
}

func (catalogued) Name() string { return sample.Lab }

func (b catalogued) Build(ctx context.Context, s path.Spec) (*path.Path, error) {
	if slices.Contains(strings.Split(os.Getenv(fakeBrokenEnv), ","), string(s.Mode)) {
		return nil, errors.New("no more memory")
	}
	p, err := b.Builder.Build(ctx, s)
	if err != nil {
		return nil, err
	}
	m, _ := mode.Find(s.Mode)
	if r, ok := m.Route(s.From, s.To); ok {
		hop := p.Hops[0]
		p.Hops = nil
		for _, k := range r.Hops {
			hop.Kind = k
			p.Hops = append(p.Hops, hop)
		}
	}
	return p, nil
}
