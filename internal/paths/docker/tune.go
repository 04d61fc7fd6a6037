package docker

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// Tunes apply only to toll's own containers and networks, and end with them. Tunes of the machine's
// devices and sysctls are refused.

func refuseTunes(s path.Spec) error {
	m, _ := mode.Find(s.Mode)
	route, ok := m.Route(s.From, s.To)
	if !ok {
		return nil
	}
	for _, t := range s.Tune.List() {
		if t.Key == mode.Engine || t.Key == mode.Ports {
			return &machine.UnsupportedError{Missing: fmt.Sprintf(
				"%s=%s: the machine's own engine writes the rules", t.Key, t.Value),
				Remedy: "--on lab"}
		}
		if err := local.RefuseTune(s, t, route); err != nil {
			return err
		}
		if whose := machines(s, t.Key, route); whose != "" {
			remedy := "--on lab, whose machine is toll's own"
			if t.Key == mode.RmemMax || t.Key == mode.WmemMax {
				remedy = "--on lab as root, which sets them during each visit"
			}
			return &machine.UnsupportedError{Missing: fmt.Sprintf(
				"%s=%s would change %s, which toll does not do", t.Key, t.Value, whose),
				Remedy: remedy}
		}
	}
	return nil
}

// machines returns the part of the machine that the tune would change, or "".
func machines(s path.Spec, k mode.Key, r mode.Route) string {
	m, _ := mode.Find(s.Mode)
	for _, h := range local.Sets(k, r) {
		switch {
		case h == mode.HopLoopback && s.Mode != mode.Shared:
			if k == mode.MTU && m.Rootless && slices.Contains(r.Hops, mode.HopBridge) {
				continue // of toll's own network in the engine's namespace
			}
			return "a loopback device that is not toll's"
		case h == mode.HopBridge && onDefault(s.Mode):
			return "the engine's default bridge"
		}
	}
	switch k {
	case mode.Rmem, mode.Wmem:
		if onMachine(s) {
			return "TCP settings outside containers, where some ends of the connections are"
		}
	case mode.RmemMax, mode.WmemMax:
		return "this machine's limits of socket buffers"
	case mode.Congestion:
		if onMachine(s) && !byRoute(s) {
			return "the congestion control outside containers, where some ends of the connections are"
		}
	}
	return ""
}

func onDefault(m mode.Name) bool { return m == mode.BridgeDefault || m == mode.Link }

func onMachine(s path.Spec) bool {
	return s.From == mode.FromHost || slices.Contains(
		[]mode.Name{mode.Native, mode.Host, mode.PublishProxy}, s.Mode)
}

// byRoute reports whether the client's route to toll's network sets the congestion control.
func byRoute(s path.Spec) bool {
	return s.From == mode.FromHost && slices.Contains(
		[]mode.Name{mode.Bridge, mode.Routed, mode.Fast, mode.FastLinks, mode.Pipework, mode.OVS},
		s.Mode)
}

func (e *engine) checkTunes(s path.Spec) error {
	for _, t := range s.Tune.List() {
		if err := e.triedTune(t.Key); err != nil {
			return err
		}
		m, _ := mode.Find(s.Mode)
		route, _ := m.Route(s.From, s.To)
		switch t.Key {
		case mode.BridgeNF:
			if s.Mode == mode.Overlay { // its bridge is in a namespace of its own
				continue
			}
			if err := e.checkBridgeNF(); err != nil {
				return err
			}
		case mode.Congestion:
			if err := e.inTrials(func() error { return local.TryCongestion(t.Value) }); err != nil {
				return err
			}
		case mode.Queues:
			if err := local.RefuseQueues(t, e.mostQueues); err != nil {
				return err
			}
		case mode.MTU:
			if e.docker.Parent == "" {
				continue
			}
			card, err := e.cardMTU()
			if err != nil {
				return err
			}
			if err := local.RefuseSubInterfaceMTU(t, route, card, "ip link set "+e.docker.Parent+" mtu "+t.Value); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *engine) cardMTU() (mtu int, err error) {
	err = e.ns.Do(func() error {
		i, err := link.Describe(e.docker.Parent)
		mtu = i.MTU
		return err
	})
	return mtu, err
}

func (e *engine) triedTune(k mode.Key) error {
	e.tuning.Lock()
	defer e.tuning.Unlock()
	if err, ok := e.triedTunes[k]; ok {
		return err
	}
	if e.triedTunes == nil {
		e.triedTunes = map[mode.Key]error{}
	}
	e.triedTunes[k] = e.inTrials(func() error {
		if k != mode.Queues {
			return local.TryTune(k)
		}
		var err error
		e.mostQueues, err = local.MostQueues()
		return err
	})
	return e.triedTunes[k]
}

func (e *engine) inTrials(f func() error) error {
	ns, err := netns.New()
	if err != nil {
		return err
	}
	defer ns.Close()
	return ns.Do(func() error {
		if err := link.Up("lo"); err != nil {
			return err
		}
		return f()
	})
}

func (s *site) tune() error {
	if len(s.path.Spec.Tune) == 0 {
		return s.engine.keepRules()
	}
	var spaces []local.Space
	for _, b := range slices.Concat(s.Servers, s.Clients) {
		if !b.shares {
			spaces = append(spaces, b.ns)
		}
	}
	err := errors.Join(s.tuned.Tune(s.path, spaces), s.engine.keepRules())
	if err != nil {
		return err
	}
	if t, ok := s.path.Spec.Tune.Get(mode.Congestion); ok && byRoute(s.path.Spec) {
		return s.engine.ns.Do(func() error {
			return link.SetRouteCongestion(s.network.subnet, t.Value)
		})
	}
	return nil
}
