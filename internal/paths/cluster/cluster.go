// Package cluster is shared by backends with paths on other machines. It has devices, hops and
// settings, which agents read on those machines.
package cluster

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Devices caches the devices of agents' network namespaces. The zero value is ready to use.
type Devices struct{ known sync.Map }

type namespace struct {
	agent *agent.Agent
	file  string // "": its own
}

// Of returns the devices that the agent reads in a network namespace. file is the namespace's file;
// "": the agent's own namespace.
func (d *Devices) Of(ctx context.Context, a *agent.Agent, file string) ([]agent.Interface, error) {
	if known, ok := d.known.Load(namespace{a, file}); ok {
		return known.([]agent.Interface), nil
	}
	got, err := a.Interfaces(ctx, file)
	if err == nil {
		d.known.Store(namespace{a, file}, got)
	}
	return got, err
}

// forget discards the devices of an agent's own namespace, so that the next call of Of reads them
// again.
func (d *Devices) forget(a *agent.Agent) { d.known.Delete(namespace{a, ""}) }

// Box is a container of a path, with an agent in it.
type Box struct {
	Agent  *agent.Agent
	Device agent.Interface // on the path's network
	Addr   netip.Addr
	Where  string
}

type port struct {
	agent  *agent.Agent
	device string
}

// Find returns the agent's box with the device that has an IPv4 address accepted by within, or nil.
func Find(a *agent.Agent, devices []agent.Interface, within func(netip.Prefix) bool) *Box {
	for _, d := range devices {
		for _, p := range d.Addrs {
			if p.Addr().Is4() && within(p) {
				return &Box{a, d, p.Addr(), a.Name()}
			}
		}
	}
	return nil
}

// Hop returns the hop of the container's device. toServer means that packets which the device
// receives go to the server.
func (b *Box) Hop(kind mode.HopKind, toServer bool) path.Hop {
	name := b.Device.Name
	return path.Hop{Kind: kind, Name: name, Where: b.Where,
		Shared: port{b.Agent, name}, Counts: counts(name, toServer),
		Read: b.Agent.Read(agent.Counter{Device: &agent.Device{Name: name, ForwardRx: toServer}})}
}

func (b *Box) paired(d agent.Interface) bool {
	return d.Index == b.Device.Peer && d.Kind == b.Device.Kind
}

// counts returns a device's counters of packets to the server and back. forwardRx means that
// packets to the server are those that the device received.
func counts(device string, forwardRx bool) [2]path.Counter {
	return [2]path.Counter{{Device: device, Sent: !forwardRx}, {Device: device, Sent: forwardRx}}
}

// Card returns the device that has the address.
func Card(devices []agent.Interface, addr netip.Addr) (agent.Interface, bool) {
	i := slices.IndexFunc(devices, func(d agent.Interface) bool {
		return slices.ContainsFunc(d.Addrs, func(p netip.Prefix) bool { return p.Addr() == addr })
	})
	if i < 0 {
		return agent.Interface{}, false
	}
	return devices[i], true
}

// Spot is a network namespace of a path, with an agent that can read it.
type Spot struct {
	Agent *agent.Agent
	At    agent.Spot
}

// Inspect returns the settings of all namespaces.
func Inspect(spots []Spot) ([]path.Setting, error) {
	var reads []func() ([]path.Setting, error)
	for _, s := range spots {
		reads = append(reads, func() ([]path.Setting, error) { return s.Agent.Inspect(s.At) })
	}
	return AtOnce(reads)
}

// AtOnce calls all functions concurrently and returns their settings. It skips nil functions.
func AtOnce(reads []func() ([]path.Setting, error)) ([]path.Setting, error) {
	var (
		wg   sync.WaitGroup
		got  = make([][]path.Setting, len(reads))
		errs = make([]error, len(reads))
	)
	for i, read := range reads {
		if read != nil {
			wg.Go(func() { got[i], errs[i] = read() })
		}
	}
	wg.Wait()
	return slices.Concat(got...), errors.Join(errs...)
}

// DrawPort returns a random port between the usual ports of servers and the ephemeral ones. The
// port may be in use.
func DrawPort() uint16 {
	const first, count = 20000, 10000
	return first + uint16(rand.N(count))
}

// SwitchHop returns a hop that counts what a bridge sent out of two of its ports.
func SwitchHop(a *agent.Agent, where, bridge string, toClient, toServer agent.Counter) path.Hop {
	return local.SwitchHop(where, bridge, a.Read(toClient), a.Read(toServer))
}

// Both returns a reader of what both given readers count: the smaller of the two counts, from the
// first reading on.
func Both(a, b local.Reader) local.Reader {
	var (
		mu    sync.Mutex
		first [2]sample.Counters
		begun bool
	)
	return func() (sample.Counters, error) {
		var (
			wg   sync.WaitGroup
			now  [2]sample.Counters
			errs [2]error
		)
		for i, read := range []local.Reader{a, b} {
			wg.Go(func() { now[i], errs[i] = read() })
		}
		wg.Wait()
		if err := errors.Join(errs[:]...); err != nil {
			return sample.Counters{}, err
		}
		mu.Lock()
		defer mu.Unlock()
		if !begun {
			first, begun = now, true
		}
		x, y := now[0].Sub(first[0]), now[1].Sub(first[1])
		return sample.Counters{
			ForwardBytes:    min(x.ForwardBytes, y.ForwardBytes),
			ForwardPackets:  min(x.ForwardPackets, y.ForwardPackets),
			BackwardBytes:   min(x.BackwardBytes, y.BackwardBytes),
			BackwardPackets: min(x.BackwardPackets, y.BackwardPackets),
		}, nil
	}
}

// Once keeps what a backend has started until Close. The zero value is ready to use.
type Once[T any] struct {
	mu      sync.Mutex
	begun   bool
	started T
	err     error
}

// Start calls begin and returns its result. Later calls return the same result, even an error. Only
// if begin failed because ctx ended do they call begin again.
func (o *Once[T]) Start(ctx context.Context, begin func(context.Context) (T, error)) (T, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.begun {
		return o.started, o.err
	}
	started, err := begin(ctx)
	if err != nil && ctx.Err() != nil {
		return started, err
	}
	o.begun, o.started, o.err = true, started, err
	return started, err
}

// Close calls end with the result of begin, if begin has succeeded. The next Start calls begin
// again.
func (o *Once[T]) Close(end func(T) error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var none T
	begun, started, err := o.begun, o.started, o.err
	o.begun, o.started, o.err = false, none, nil
	if !begun || err != nil {
		return nil
	}
	return end(started)
}

// Check builds a path, closes it and returns the error. What the path shares with others stays
// until the backend is closed.
func Check(ctx context.Context, b path.Builder, spec path.Spec) error {
	p, err := b.Build(ctx, spec)
	var u *machine.UnsupportedError
	if errors.As(err, &u) {
		return u // without the path, which the caller adds
	}
	if err != nil {
		return err
	}
	return p.Close()
}

// Refuse returns an error for crowds, foreign programs and tunes of devices, which backends on
// other machines do not support.
func Refuse(s path.Spec) error {
	if n, m := s.Count(); n > 1 || m > 1 {
		return &machine.UnsupportedError{
			Missing: "on other machines, toll measures only one server and one client", Remedy: "--on lab or docker"}
	}
	if s.Second {
		return &machine.UnsupportedError{
			Missing: "toll does not start foreign programs on other machines",
			Remedy:  "--on lab or docker"}
	}
	for _, t := range s.Tune.List() {
		if t.Key != mode.Nodelay { // nodelay is an option of the load
			return &machine.UnsupportedError{
				Missing: "toll sets " + string(t.Key) + " only on this machine",
				Remedy:  "--on lab or docker"}
		}
	}
	return nil
}

// NoMode returns the error for a mode that the backend's modes lack. It begins with lacks, such as
// "a swarm has no services".
func NoMode(lacks string, m mode.Name, modes []string) error {
	return &machine.UnsupportedError{Missing: lacks + " in mode " + string(m),
		Remedy: printable.Either(modes) + "; or --on lab", Lack: machine.LackMode}
}
