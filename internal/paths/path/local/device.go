package local

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Device returns a reader of a device's counters. With forwardRx, received packets go to the
// server.
func Device(ns Space, dev string, forwardRx bool) func() (sample.Counters, error) {
	return func() (out sample.Counters, err error) {
		err = ns.Do(func() error {
			c, err := link.Stats(dev)
			if forwardRx {
				out = sample.Counters{ForwardBytes: c.RxBytes, ForwardPackets: c.RxPackets,
					BackwardBytes: c.TxBytes, BackwardPackets: c.TxPackets}
			} else {
				out = sample.Counters{ForwardBytes: c.TxBytes, ForwardPackets: c.TxPackets,
					BackwardBytes: c.RxBytes, BackwardPackets: c.RxPackets}
			}
			return err
		})
		return out, err
	}
}

// Links describes the named devices of a namespace or, without names, all. where is the name of the
// place.
func Links(ns Space, where string, names ...string) (out []sample.Link, err error) {
	err = ns.Do(func() (err error) {
		if len(names) == 0 {
			if names, err = link.Names(); err != nil {
				return err
			}
		}
		for _, n := range names {
			info, err := link.Describe(n)
			if err != nil {
				return err
			}
			out = append(out, sample.Link{Name: n, Where: where, Kind: info.Kind, MTU: info.MTU,
				Qdisc: info.Qdisc, Offloads: info.Offloads, Rate: info.Rate})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("describe %s: %w", where, err)
	}
	return out, nil
}

// OneWay returns a reader that returns only the forward counts of read, for a device whose counter
// has both directions.
func OneWay(read func() (sample.Counters, error)) func() (sample.Counters, error) {
	return func() (sample.Counters, error) {
		c, err := read()
		c.BackwardBytes, c.BackwardPackets = 0, 0
		return c, err
	}
}

// SentBy returns a reader of what ports sent: ports to servers as forward, ports to clients as
// backward. Both given readers return it as forward.
func SentBy(toServer, toClient func() (sample.Counters, error)) func() (sample.Counters, error) {
	return func() (sample.Counters, error) {
		f, err := toServer()
		if err != nil {
			return f, err
		}
		b, err := toClient()
		return sample.Counters{ForwardBytes: f.ForwardBytes, ForwardPackets: f.ForwardPackets,
			BackwardBytes: b.ForwardBytes, BackwardPackets: b.ForwardPackets}, err
	}
}
