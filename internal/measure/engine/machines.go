package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/load"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

const (
	// farLead is added to lead between machines, besides round trips, because the request to start
	// is relayed.
	farLead = 50 * time.Millisecond
	// leadTrips is the multiple of a clock's error bound, half a round trip, that is added to lead.
	leadTrips = 4
	// farTail is added to tail, so that no end replies before a late meter was read.
	farTail      = 100 * time.Millisecond
	farExit      = 2 * time.Second
	clockTimeout = 10 * time.Second
	// unsureShare is the largest clock error, as a share of a window, if only the window's position
	// depends on the clocks. unsureTime is the largest one, as a share of a time that is measured
	// with the clocks of both ends.
	unsureShare = 0.1
	unsureTime  = 0.01
)

func skipApart(p sample.Plan) sample.Plan {
	return plan.Drop(p, func(c sample.Cell) *sample.Skip {
		why := workload.Of(p.Loads.Of(c.Load)).Apart
		if why == "" || !sample.Distant(c.On) {
			return nil
		}
		return &sample.Skip{Mode: c.Mode, From: c.From, To: c.To, Load: c.Load, Tune: c.Tune,
			On: c.On, Reason: why,
			Remedy: "measure it with --on lab or docker, or rr, whose round trips have one clock"}
	})
}

// left returns the error of a machine of the path that is lost, or nil.
func left(p *path.Path) error {
	for _, m := range machinesOf(p) {
		if err := m.Err(); err != nil {
			return err
		}
	}
	return nil
}

// machinesOf includes the machines of the ends.
func machinesOf(p *path.Path) []path.Machine {
	out := slices.Clone(p.Machines)
	add := func(m path.Machine) {
		if m != nil && !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	for _, s := range p.Servers {
		add(s.Machine)
	}
	for _, c := range p.Clients {
		add(c.Machine)
	}
	return out
}

// distant handles a path's other machines: their clocks, their meters and the channel to them.
type distant struct {
	path      *path.Path
	offsets   map[path.Machine]path.Offset
	meterings []path.Metering
	moved     uint64
}

func (d *distant) far() bool { return len(d.offsets) > 0 }

// here reports whether an end is on this machine.
func (d *distant) here() bool {
	return !d.far() || slices.ContainsFunc(d.path.Servers, func(s path.Server) bool {
		return s.Machine == nil
	}) ||
		slices.ContainsFunc(d.path.Clients, func(c path.Client) bool { return c.Machine == nil })
}

func compareClocks(ctx context.Context, p *path.Path) (*distant, error) {
	all := machinesOf(p)
	d := &distant{path: p, offsets: make(map[path.Machine]path.Offset, len(all))}
	ctx, cancel := context.WithTimeoutCause(
		ctx, clockTimeout, errors.New("it did not report its clock in time"))
	defer cancel()
	offsets := make([]path.Offset, len(all))
	err := atOnce(len(all), func(i int) (err error) {
		offsets[i], err = all[i].Clock(ctx)
		return err
	})
	for i, m := range all {
		d.offsets[m] = offsets[i]
	}
	return d, err
}

// unsure returns the largest error of a time between instants of two ends.
func (d *distant) unsure() time.Duration {
	const ends = 2
	most := time.Duration(0)
	for _, o := range d.offsets {
		most = max(most, o.Unsure)
	}
	return ends * most
}

// lead and tail return what other machines add to the constants of these names.
func (d *distant) lead() time.Duration {
	if !d.far() {
		return 0
	}
	return farLead + leadTrips*d.unsure()
}

func (d *distant) tail() time.Duration {
	if !d.far() {
		return 0
	}
	return farTail + d.unsure()
}

func (d *distant) sure(warmup, window float64) error {
	if u := d.unsure().Seconds(); u > min(warmup, unsureShare*window) {
		return fmt.Errorf(
			"the machines' clocks are only known to ± %.3g s, too coarsely for a warm-up of %.3g "+
				"s and a window of %.3g s", u, warmup, window)
	}
	return nil
}

// sureOf returns an error if the clocks are too inexact for a time between instants of two ends.
func (d *distant) sureOf(seconds float64) error {
	if u := d.unsure().Seconds(); u > unsureTime*seconds {
		return fmt.Errorf(
			"the machines' clocks are only known to ± %.3g s, too coarsely for "+
				"a transfer that took %.3g s", u, seconds)
	}
	return nil
}

// shifted returns the schedule by the clock of a machine; nil is this one.
func (d *distant) shifted(when load.Schedule, m path.Machine) load.Schedule {
	by := int64(d.offsets[m].Ahead)
	own := make([]load.Slice, len(when.Slices))
	for i, s := range when.Slices {
		s.Start, s.End = s.Start+by, s.End+by
		if s.To > 0 {
			s.From, s.To = s.From+by, s.To+by
		}
		own[i] = s
	}
	if when.Slices = own; len(own) == 0 {
		when.Slices = nil
	}
	when.Start += by
	when.From += by
	when.To += by
	for _, t := range []*int64{&when.End, &when.Hold} {
		if *t != 0 {
			*t += by
		}
	}
	return when
}

func (d *distant) hush(ctx context.Context, took time.Duration) (resume func(), err error) {
	if d.path.Channel == nil || !d.far() {
		return func() {}, nil
	}
	return d.path.Channel.Hush(ctx, took)
}

// mark notes how much the channel has carried. quiet returns a *channelError if it carried more
// since.
func (d *distant) mark() {
	if d.path.Channel != nil {
		d.moved = d.path.Channel.Moved()
	}
}

func (d *distant) quiet() error {
	if d.path.Channel == nil {
		return nil
	}
	if n := d.path.Channel.Moved() - d.moved; n > 0 {
		return &channelError{"the agents", n}
	}
	return nil
}

// meter requests readings of the other machines' meters at from and to, by this machine's clock in
// ns. If to is 0, the second reading is made at the end of the load (see path.Machine).
func (d *distant) meter(ctx context.Context, from, to int64) error {
	d.meterings = make([]path.Metering, len(d.path.Machines))
	return atOnce(len(d.path.Machines), func(i int) (err error) {
		m := d.path.Machines[i]
		ahead, end := int64(d.offsets[m].Ahead), int64(0)
		if to != 0 {
			end = to + ahead
		}
		d.meterings[i], err = m.Meter(ctx, from+ahead, end, pidsOf(d.path, m)...)
		return err
	})
}

// note adds what the other machines' meters read to v. It returns a *channelError if the channel
// was used in the window.
func (d *distant) note(ctx context.Context, v *sample.Visit,
	fits func(elapsed float64) bool) error {
	if !d.far() {
		return nil
	}
	uses := make([]path.Use, len(d.meterings))
	err := atOnce(len(d.meterings), func(i int) (err error) {
		uses[i], err = d.meterings[i](ctx)
		return err
	})
	if err != nil {
		return err
	}
	good := !d.here() || v.Elapsed > 0
	n := 0
	if v.Elapsed > 0 {
		n = 1
	}
	for i, u := range uses {
		m := d.path.Machines[i]
		if u.Control.Bytes > 0 {
			return &channelError{m.Name(), u.Control.Bytes}
		}
		good = good && fits(u.Elapsed) && !math.IsNaN(u.Elapsed)
		o := d.offsets[m]
		v.Machines = append(v.Machines, sample.MachineUse{
			Name: m.Name(), CPUs: len(u.CPUs), Ahead: o.Ahead.Seconds(), Unsure: o.Unsure.Seconds(),
			ControlPackets: u.Control.Packets})
		v.Machine = append(v.Machine, u.CPUs...)
		v.Elapsed += u.Elapsed
		v.Throttled += u.Throttled
		n++
		noteProxies(d.path, m, u.Procs, v)
	}
	if !good {
		v.Metered = v.WithoutCPU()
		return nil
	}
	v.Elapsed /= float64(n)
	return nil
}

// read reads the hops' counters. With other machines it reads all at once, because each takes a
// round trip.
func (d *distant) read(hops []path.Hop) ([]sample.Counters, error) {
	if !d.far() {
		return path.ReadAll(hops)
	}
	out := make([]sample.Counters, len(hops))
	return out, atOnce(len(hops), func(i int) error {
		c, err := path.ReadAll(hops[i : i+1])
		out[i] = c[0]
		return err
	})
}

// pidsOf returns the processes of the path's proxies on a machine; nil is this one.
func pidsOf(p *path.Path, m path.Machine) (pids []int) {
	for _, x := range p.Proxies {
		if x.Machine == m {
			pids = append(pids, x.PID)
		}
	}
	return pids
}

func noteProxies(p *path.Path, m path.Machine, spent []float64, v *sample.Visit) {
	i := 0
	for _, x := range p.Proxies {
		if x.Machine != m || i >= len(spent) {
			continue
		}
		if v.Proxy == nil {
			v.Proxy = &sample.ProxyUse{Name: x.Name}
		}
		v.Proxy.CPU += spent[i]
		i++
	}
}
