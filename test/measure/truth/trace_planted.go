package truth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	judged "github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	kernel "github.com/bridgetoll/bridgetoll/internal/kernel/trace"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/test/measure/peer"
)

const (
	// how far the planted part may be from the planted amount, as a share of it
	plantedShare = 0.15
	otherLimit   = 0.1e-6 // s; how far other path rows may move
)

// plantedPart changes one part of a mode's path.
type plantedPart struct {
	name string
	what string
	// args of toll trace and toll compare: the mode and its placement
	args []string
	mode mode.Name
	tune string        // what the changed cell has
	may  []sample.Part // whose rows may move
	// plant returns the change; size is what traces have, reference what the untraced runs have,
	// whose difference is divided by their quotient.
	plant           func(size int) plants
	size, reference int
	// spin makes the relays wait; 0: no relays. The amount is then known without a reference.
	spin time.Duration
}

const (
	spin       = 5 * time.Microsecond
	pacedTrips = 4_000 // trips/s, so few that each one waits
	frame      = 67    // bytes of a request with one byte, Ethernet header to payload
)

var plantedParts = []plantedPart{
	{name: "rules in FORWARD", what: "100 rules; known by 400", mode: mode.Bridge,
		args: []string{"--from", "container"}, tune: inert,
		may: []sample.Part{sample.PartBridge}, size: 100, reference: 400,
		plant: func(n int) plants { return plants{inert: forwarding(n)} }},
	{name: "a second bridge", what: "behind the first", mode: mode.Bridge,
		args: []string{"--from", "container"}, tune: inert,
		may: []sample.Part{sample.PartBridge, sample.PartQdisc, sample.PartDriver,
			sample.PartHandover},
		plant: func(int) plants { return plants{inert: secondBridge} }},
	{name: "tbf", what: fmt.Sprintf("%d requests a second", pacedTrips), mode: mode.Bridge,
		args: []string{"--from", "host"}, tune: inert, may: []sample.Part{sample.PartQdisc},
		plant: func(int) plants { return plants{inert: paced(pacedTrips * frame * 8)} }},
	{name: "a relay that spins", what: spin.String() + " each way", mode: mode.PublishProxy,
		args: []string{"--from", "host", "--to", "loopback"}, tune: inert,
		may: []sample.Part{sample.PartRelay}, spin: spin},
	{name: "bridge-nf off", what: "a tune", mode: mode.Bridge,
		args: []string{"--from", "container"}, tune: "bridge-nf=off",
		may: []sample.Part{sample.PartBridge}},
}

func (t *trial) plantedParts(ctx context.Context) ([]table, error) {
	out := table{title: "Traces: planted differences",
		text: fmt.Sprintf("A mode against itself with something in its path. What that costs is "+
			"known from untraced slices of %s, or from the relay's own clock; where it is, from "+
			"%d traces of %s. A row holds if the right part moves by that amount ±%.0f %%, and no "+
			"other part of the path by more than %.1f µs; it is unclear if an interval has values on "+
			"both sides of a limit.", t.scale.traceReference,
			t.scale.tracePlant.n, t.scale.tracePlant.each, percent*plantedShare,
			otherLimit/microsecond),
		head: []string{"planted", "is", "costs", "the part moved by", "others that moved, or may have"}}
	for _, d := range plantedParts {
		err := t.findPart(ctx, &out, d)
		if ctx.Err() != nil {
			return nil, err
		}
		if err != nil { // others may still be found
			t.say("trace-planted: %s: %v", d.name, err)
			out.add(no, d.name, d.what, path.OneLine(err), "", "")
		}
	}
	return []table{out}, nil
}

func (t *trial) findPart(ctx context.Context, out *table, d plantedPart) (err error) {
	known, err := t.cost(ctx, d)
	if err != nil {
		return err
	}
	t.say("trace-planted: %s: %s costs %s", d.name, d.what, known)
	b, err := t.builderOf(d, d.size)
	if err != nil {
		return err
	}
	p, err := t.planOf(ctx, "trace", "--baseline", d)
	if err != nil {
		return err
	}
	tracer, err := kernel.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tracer.Close()) }()
	moves := moved{others: map[string][]amount{}}
	for i := range t.scale.tracePlant.n {
		p.Seed = t.seed + uint64(i)
		records, err := t.records(ctx, p, t.scale.tracePlant.each, b,
			engine.Kernel{Tracer: tracer})
		if err != nil {
			return err
		}
		r, err := judgeTrace(records)
		if err != nil {
			return err
		}
		if err := moves.add(r, d); err != nil {
			return err
		}
		t.say("trace-planted: %s: run %d of %d: %s; others: %s", d.name, i+1,
			t.scale.tracePlant.n, moves.right[i], moves.last())
	}
	out.add(moves.verdict(known, partLimits), d.name, d.what, known.String(),
		mean(moves.right).String(), moves.text(partLimits))
	return nil
}

func partLimits(string) float64 { return otherLimit }

// moved is what several traces of a planted difference say.
type moved struct {
	right  []amount // sums of the rows that may move
	others map[string][]amount
}

func (m *moved) add(r *judged.Report, d plantedPart) error {
	i := slices.IndexFunc(r.Traces, func(t judged.Trace) bool {
		return t.Cell.Mode == d.mode && string(t.Cell.Tune) == d.tune
	})
	if i < 0 {
		return fmt.Errorf("%d traces, none of %s: failed: %v", len(r.Traces), d.tune, r.Failed)
	}
	t := r.Traces[i]
	if t.Words != "" {
		return errors.New(t.Words)
	}
	may := map[string]bool{} // without the devices, which are those of one mode
	for _, s := range slices.Concat(t.Segments, t.Its) {
		name := judged.WithoutDevices(s.Row)
		may[name] = may[name] || slices.ContainsFunc(d.may, func(p sample.Part) bool {
			return has(s.Part, p)
		})
	}
	var right amount
	for _, row := range t.Rows {
		moves := may[judged.WithoutDevices(row.Name)]
		if !row.InPath() && !moves {
			continue
		}
		a, err := ofPrice(row.Added)
		if err != nil {
			return fmt.Errorf("%s: %w", row.Name, err)
		}
		if moves {
			right = right.plus(a)
			continue
		}
		m.others[row.Name] = append(m.others[row.Name], a)
	}
	m.right = append(m.right, right)
	return nil
}

// text returns the others that moved farther than their limit, or may have: first those that did.
func (m *moved) text(limit func(other string) float64) string {
	var out []string
	for _, v := range []verdict{no, unclear} {
		for _, name := range slices.Sorted(maps.Keys(m.others)) {
			if a := mean(m.others[name]); a.within(limit(name)) == v {
				out = append(out, fmt.Sprintf("%s: %s %s", v, name, a))
			}
		}
	}
	return strings.Join(out, ", ")
}

// last returns what the last run says of the others.
func (m *moved) last() string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m.others)) {
		out = append(out, name+" "+m.others[name][len(m.others[name])-1].String())
	}
	return strings.Join(out, ", ")
}

// verdict tests whether the right part moved by the known amount, and each other by no more than
// its limit, in s.
func (m *moved) verdict(known amount, limit func(other string) float64) verdict {
	v := mean(m.right).minus(known).within(plantedShare * math.Abs(known.at))
	for name, all := range m.others {
		v = worst(v, mean(all).within(limit(name)))
	}
	return v
}

// cost returns what is planted adds to a trip, without tracing.
func (t *trial) cost(ctx context.Context, d plantedPart) (amount, error) {
	if d.spin > 0 {
		return amount{at: 2 * d.spin.Seconds()}, nil
	}
	reference := max(1, d.reference)
	b, err := t.builderOf(d, reference)
	if err != nil {
		return amount{}, err
	}
	p, err := t.planOf(ctx, "compare", "--baseline", d)
	if err != nil {
		return amount{}, err
	}
	r, err := t.measure(ctx, p, t.scale.traceReference, b)
	if err != nil {
		return amount{}, err
	}
	c, err := cell(r, string(d.mode), d.tune, rr)
	if err != nil {
		return amount{}, err
	}
	a, err := added(c)
	return a.times(float64(max(1, d.size)) / float64(reference)), err
}

// added returns what a cell's median trip adds to the baseline's.
func added(c analysis.Cell) (amount, error) {
	m := c.Metrics[c.Primary]
	if _, err := ofRatio(m.Ratio); err != nil {
		return amount{}, err
	}
	baseline := m.Median / m.Ratio.Median
	at := baseline * (m.Ratio.Median - 1)
	half := baseline * max(m.Ratio.High-m.Ratio.Median, m.Ratio.Median-m.Ratio.Low)
	return amount{at, half}, nil
}

// The plan is made by toll.
func (t *trial) planOf(ctx context.Context, command, against string, d plantedPart) (p sample.Plan,
	err error) {
	out, err := t.run(ctx, slices.Concat([]string{command, "--dry-run", "--format", "json",
		"--congestion", t.congestion, string(d.mode), against, string(d.mode), "--tune", d.tune,
		"--load", rr, "--pin", sample.PinFar, "--seed", strconv.FormatUint(t.seed, 10)},
		d.args)...)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(out, &p); err != nil {
		return p, fmt.Errorf("read the plan: %w", err)
	}
	return p, nil
}

func judgeTrace(records []byte) (*judged.Report, error) {
	f, err := sample.Read(bytes.NewReader(records))
	if err != nil {
		return nil, err
	}
	r, ok := judge.Judge(f).(*judged.Report)
	if !ok {
		return nil, errors.New("the file is not judged as a trace")
	}
	return r, nil
}

func (t *trial) builderOf(d plantedPart, size int) (path.Builder, error) {
	if d.spin > 0 {
		return t.relays(d)
	}
	if d.plant == nil {
		return t.lab, nil
	}
	return planting{t.lab, d.plant(size)}, nil
}

// byTune builds the paths of each tune by a lab of its own.
type byTune struct {
	path.Builder
	tunes map[mode.Tunes]path.Builder
}

func (b byTune) Build(ctx context.Context, s path.Spec) (*path.Path, error) {
	return b.tunes[s.Tune].Build(ctx, s)
}

// Both cells have the same relay, which spins in one of them.
func (t *trial) relays(d plantedPart) (path.Builder, error) {
	b := byTune{t.lab, map[mode.Tunes]path.Builder{}}
	for tune, spin := range map[mode.Tunes]time.Duration{"": 0, mode.Tunes(d.tune): d.spin} {
		file, err := t.relay(spin)
		if err != nil {
			return nil, err
		}
		b.tunes[tune] = &lab.Lab{Congestion: t.congestion, ProxyPath: file}
	}
	return b, nil
}

// relay returns a program that takes docker-proxy's arguments.
func (t *trial) relay(spin time.Duration) (file string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	file = filepath.Join(t.dir, "relay-"+spin.String())
	const executable = 0o755
	return file, os.WriteFile(file, fmt.Appendf(nil, "#!/bin/sh\nexec '%s' %s %s \"$@\"\n", self,
		relayArg, spin), executable)
}

func forwarding(n int) plant {
	return func(ctx context.Context, p *path.Path) error {
		return onMachine(ctx, p, walk("forward", n), "nft", "-f", "-")
	}
}

// secondBridge puts a bridge between the server's port and the one that it was on. The machine's
// rules accept what crosses it.
func secondBridge(ctx context.Context, p *path.Path) error {
	first, port, err := serverPort(p)
	if err != nil {
		return err
	}
	commands := fmt.Sprintf(`set -e
ip link add planted type bridge
ip link add planted0 type veth peer name planted1
ip link set planted0 master %s
ip link set planted1 master planted
ip link set %s master planted
for d in planted planted0 planted1; do ip link set $d up; done
nft insert rule ip raw PREROUTING iifname planted accept
nft insert rule ip filter FORWARD iifname planted accept
`, first, port)
	return onMachine(ctx, p, commands, "sh")
}

func serverPort(p *path.Path) (bridge, port string, err error) {
	for _, h := range p.Hops {
		if h.Kind == mode.HopVeth {
			port, _, _ = strings.Cut(h.Name, "⇄")
		}
	}
	for _, l := range p.Links {
		if l.Kind == string(mode.HopBridge) {
			bridge = l.Name
		}
	}
	if bridge == "" || port == "" {
		return "", "", errors.New("the path has no bridge")
	}
	return bridge, port, nil
}

// paced lets packets of a few bytes wait: nothing may be sent ahead.
func paced(bits float64) plant { return shaped(bits, "200", "64kb") }

// onMachine runs a command in the namespace of the path's bridge.
func onMachine(ctx context.Context, p *path.Path, input string, command ...string) error {
	all, err := p.Namespaces()
	if err != nil {
		return err
	}
	for _, n := range all {
		defer n.Close()
	}
	bridge, _, err := serverPort(p)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(n path.Namespace) bool {
		return slices.ContainsFunc(n.Links, func(l sample.Link) bool { return l.Name == bridge })
	})
	if i < 0 {
		return errors.New("no namespace has the path's bridge")
	}
	ns, err := netns.Join(fmt.Sprintf("/proc/self/fd/%d", all[i].Fd()))
	if err != nil {
		return err
	}
	defer ns.Close()
	_, err = within(ctx, peer.Namespace{NS: ns}, input, command...)
	return err
}
