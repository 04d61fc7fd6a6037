package lab

import (
	"fmt"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sockmem"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

func (l *Lab) checkTunes(s path.Spec) error {
	m, _ := mode.Find(s.Mode)
	ways := m.RoutesTo(s.From, s.To)
	if ways == nil {
		return nil // Build returns the error
	}
	route := ways[0]
	if l.ProxyPath == noProxy && slices.Contains(route.Hops, mode.HopProxy) {
		route = ways[len(ways)-1]
	}
	if s.Tune.Limits() {
		if err := sockmem.Settable(); err != nil {
			return err
		}
	}
	for _, t := range s.Tune.List() {
		if t.Key == mode.Congestion {
			if err := l.tryCongestion(t.Value); err != nil {
				return err
			}
		}
		if err := local.RefuseTune(s, t, route); err != nil {
			return err
		}
		if err := l.fits(t, s.Mode, route); err != nil {
			return err
		}
		if err := local.RefuseQueues(t, l.mostQueues); err != nil {
			return err
		}
	}
	return nil
}

// fits returns an error if an MTU exceeds the wire's on a sub-interface or a switch. (A router
// would notify the sender.)
func (l *Lab) fits(t mode.Tune, m mode.Name, route mode.Route) error {
	wire := l.Wire.MTU
	if wire == 0 {
		wire = defaultMTU
	}
	if err := local.RefuseSubInterfaceMTU(t, route, wire, "--wire mtu="+t.Value); err != nil {
		return err
	}
	if t.Key != mode.MTU || t.Number() <= wire || !recipes[m].onSwitch ||
		!slices.Contains(route.Hops, mode.HopWire) {
		return nil
	}
	return &machine.UnsupportedError{Missing: fmt.Sprintf(
		"mtu=%s: a switch drops frames that are larger than the wire's %d", t.Value, wire),
		Remedy: "--wire mtu=" + t.Value}
}

const defaultMTU = 1500

func (s *site) tune() error {
	spaces := []local.Space{s.a.ns, s.b.ns}
	if s.engine != s.a {
		spaces = append(spaces, s.engine.ns)
	}
	for _, c := range s.boxes {
		spaces = append(spaces, c.ns)
	}
	return s.tuned.Tune(s.path, spaces)
}

var tuneNeeds = map[mode.Key]need{
	mode.RPS: needRPS, mode.XPS: needXPS, mode.Queues: needQueues, mode.Threaded: needThreaded,
	mode.BigTCP: needBigTCP, mode.BigTCPContainer: needBigTCP, mode.BigTCPLoopback: needBigTCP,
	mode.BridgeNF: needBridgeNF, mode.Idle: needIdle,
}

func (l *Lab) tryQueues() (err error) {
	l.mostQueues, err = local.MostQueues()
	return err
}
