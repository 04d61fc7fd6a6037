package lab

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

const (
	minRate  = 10_000_000
	maxRate  = 400_000_000_000
	maxDelay = 100 * time.Millisecond
)

const wireHint = "--wire rate=10gbit,mtu=1500,delay=50us (any of the three)"

type wireError struct{ Text, Why string }

func (e *wireError) Error() string { return fmt.Sprintf("wire %q: %s", e.Text, e.Why) }

// Hint returns an example of a valid description.
func (*wireError) Hint() string { return wireHint }

// ParseWire parses a description such as "rate=10gbit,mtu=1500,delay=50us", in which each part may
// be missing. "" gives the zero value. The error has a Hint.
func ParseWire(text string) (w sample.Wire, err error) {
	if text == "" {
		return w, nil
	}
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(part, "=")
		if seen[key] {
			return sample.Wire{}, &wireError{text, key + " is given twice"}
		}
		seen[key] = true
		why := ""
		switch key {
		case "rate":
			rate, err := units.ParseRate(value)
			if w.Rate = uint64(rate); err != nil || rate < minRate || rate > maxRate {
				why = "rate must be from 10mbit to 400gbit"
			}
		case "mtu":
			if w.MTU, err = strconv.Atoi(value); err != nil || w.MTU < mode.MinMTU ||
				w.MTU > mode.MaxMTU {
				why = fmt.Sprintf("mtu must be from %d to %d", mode.MinMTU, mode.MaxMTU)
			}
		case "delay":
			d, err := units.ParseTime(value)
			if w.Delay = d.Seconds(); err != nil || d < time.Microsecond || d > maxDelay ||
				d%time.Microsecond != 0 {
				why = "delay must be from 1us to 100ms, in whole microseconds"
			}
		default:
			why = fmt.Sprintf("%q is not one of rate, mtu, delay", key)
		}
		if why != "" {
			return sample.Wire{}, &wireError{text, why}
		}
	}
	return w, nil
}

func crossesWire(m mode.Name, from mode.Placement, to mode.Target) bool {
	return recipe.Crosses(m, from, to, mode.HopWire)
}

// Applies reports whether w affects the path: the path crosses the wire, or has a device with the
// card's MTU.
func Applies(w sample.Wire, m mode.Name, from mode.Placement, to mode.Target) bool {
	card := recipes[m].onSwitch || recipe.Crosses(m, from, to, mode.HopMacvlan) ||
		recipe.Crosses(m, from, to, mode.HopIPvlan)
	return crossesWire(m, from, to) || w.MTU > 0 && card
}

// layWire makes the wire. It shapes the wire only if the path crosses it, so a kernel without
// traffic shaping can build the other paths.
func (s *site) layWire() error {
	w := s.lab.Wire
	tid, err := s.b.ns.TID()
	if err != nil {
		return err
	}
	if err := s.a.ns.Do(func() error { return link.AddVeth(wireName, wireName, tid) }); err != nil {
		return fmt.Errorf("build the wire: %w", err)
	}
	for _, m := range []*hostMachine{s.a, s.b} {
		err := m.ns.Do(func() error {
			if w.MTU > 0 {
				if err := link.SetMTU(wireName, w.MTU); err != nil {
					return err
				}
			}
			if err := addressed(wireName, m.addr); err != nil {
				return err
			}
			if m.addr6.IsValid() {
				if err := link.AddAddr(wireName, m.addr6); err != nil {
					return err
				}
			}
			if !s.crossesWire() {
				return nil
			}
			return link.SetShape(wireName, link.Shape{Rate: w.Rate, Delay: w.OneWay()})
		})
		if err != nil {
			return fmt.Errorf("build the wire: %w", err)
		}
	}
	if t := w.String(); t != "" && s.crossesWire() {
		s.path.Facts["wire"] = t
	}
	return nil
}

// checkWire reads the wire's shape back, because other programs also set queueing disciplines.
func (s *site) checkWire() error {
	w := s.lab.Wire
	want := ""
	switch {
	case !s.crossesWire():
		return nil
	case w.Delay > 0:
		want = "netem"
	case w.Rate > 0:
		want = "tbf"
	default:
		return nil
	}
	for _, m := range []*hostMachine{s.a, s.b} {
		err := m.ns.Do(func() error {
			info, err := link.Describe(wireName)
			if err == nil && info.Qdisc != want {
				err = fmt.Errorf(
					"the wire's traffic shaping was removed: one end has the queueing discipline %q, not %s", info.Qdisc, want)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

func (s *site) crossesWire() bool {
	spec := s.path.Spec
	return crossesWire(spec.Mode, spec.From, spec.To)
}

func (s *site) guardWire() {
	if !slices.Contains(s.path.Kinds(), string(mode.HopWire)) {
		s.path.Guards = append(s.path.Guards, local.Unused(s.wireHop()))
	}
}

func (l *Lab) tryWire() error {
	w := l.Wire
	if err := link.AddVeth("try-wire", "try-wire2", unix.Gettid()); err != nil {
		return local.MissingDevice(err, "veth", "CONFIG_VETH")
	}
	for _, part := range []struct {
		shape        link.Shape
		what, option string
		module       string
	}{
		{link.Shape{Rate: w.Rate}, "rate", "CONFIG_NET_SCH_TBF", "sch_tbf"},
		{link.Shape{Delay: w.OneWay()}, "delay", "CONFIG_NET_SCH_NETEM", "sch_netem"},
	} {
		if part.shape == (link.Shape{}) {
			continue
		}
		err := link.SetShape("try-wire", part.shape)
		switch {
		case err == nil:
		case !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EOPNOTSUPP):
			return err
		default:
			return &machine.UnsupportedError{
				Missing: fmt.Sprintf("the kernel cannot give the wire a %s (%s)", part.what,
					part.option),
				Remedy: remedy.Modprobe(part.module) + ", or leave " + part.what +
					" out of --wire",
				Err: err,
			}
		}
		if err := link.ClearShape("try-wire"); err != nil {
			return err
		}
	}
	return nil
}
