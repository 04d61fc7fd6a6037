package local

import (
	"fmt"
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Reader reads counters.
type Reader = func() (sample.Counters, error)

// LoopbackHop returns the hop of a namespace's loopback device, which counts both directions as
// one.
func LoopbackHop(ns Space, where string) path.Hop {
	return path.Hop{Kind: mode.HopLoopback, Name: "lo", Where: where, Expect: path.CarriesBoth,
		Read: OneWay(Device(ns, "lo", true))}
}

// ContainerHop returns the hop of a container's device. port is the name of the other end of a veth
// pair, or "".
func ContainerHop(kind mode.HopKind, ns Space, where, device, port string, toServer bool) path.Hop {
	h := path.Hop{Kind: kind, Name: device, Where: where, Read: Device(ns, device, toServer)}
	if port != "" {
		h.Name = port + "⇄" + device
	}
	return h
}

// BridgeHop returns the hop of a bridge that counts traffic between the machine's stack and the
// containers.
func BridgeHop(ns Space, where, bridge string, toServer bool) path.Hop {
	return path.Hop{Kind: mode.HopBridge, Name: bridge, Where: where,
		Read: Device(ns, bridge, !toServer),
		Counts: [2]path.Counter{{Device: bridge, Sent: toServer},
			{Device: bridge, Sent: !toServer}}}
}

// SwitchHop returns the hop of a bridge between ports. It counts what the bridge sent to clients'
// and servers' ports, because the bridge's own counters miss frames that it only forwards.
func SwitchHop(where, bridge string, toClients, toServers Reader) path.Hop {
	return path.Hop{Kind: mode.HopBridge, Name: bridge + " ports", Where: where,
		Read: SentBy(toServers, toClients)}
}

// BridgeLegHop returns a hop of a bridge that the load crosses twice, to the proxy and to the
// server. Leg "in" counts what the machine received from the bridge, leg "out" what it sent to the
// bridge. Each counts both directions of the load.
func BridgeLegHop(ns Space, where, bridge, leg string) path.Hop {
	return path.Hop{Kind: mode.HopBridge, Name: bridge + " " + leg, Where: where,
		Expect: path.CarriesBoth,
		Read:   OneWay(Device(ns, bridge, leg == "in")),
		Counts: [2]path.Counter{{Device: bridge, Sent: leg != "in"}}}
}

// ReflectedHop returns the hop of a card whose switch reflects frames. The card sends both
// directions of the load, and receives both.
func ReflectedHop(ns Space, where, card string) path.Hop {
	return path.Hop{Kind: mode.HopWire, Name: card, Where: where, Expect: path.CarriesBoth,
		Read: OneWay(Device(ns, card, false))}
}

// ProxyHop adds a docker-proxy to the path and returns its hop.
func ProxyHop(p *path.Path, proxy Proxy, name, where string) path.Hop {
	proxy.Beside = proxy.Beside || p.Spec.From == mode.FromHost
	return RelayHop(p, mode.HopProxy, proxy, name, where)
}

// RelayHop adds a process that relays the load to the path and returns its hop.
func RelayHop(p *path.Path, kind mode.HopKind, proxy Proxy, name, where string) path.Hop {
	p.Proxies = append(p.Proxies, path.Proxy{Name: name, PID: proxy.PID})
	p.Facts["proxy"] = name
	return proxy.Hop(p.Spec.UDP, kind, name, where)
}

// Hop returns the proxy's hop for TCP or UDP.
func (p Proxy) Hop(udp bool, kind mode.HopKind, name, where string) path.Hop {
	h := path.Hop{Kind: kind, Name: name, Where: where + ", process " + strconv.Itoa(p.PID)}
	if udp {
		return p.datagrams(h)
	}
	h.Expect, h.Read = path.Relays, p.Relayed()
	return h
}

// PortHops adds a process that relays the ports of all servers, before the path's other relays. set
// sets the fields that differ by server. PortHops returns a hop for each server. For UDP it returns
// one hop for all, because what a process reads and writes is not counted by port.
func PortHops(p *path.Path, kind mode.HopKind, relay Proxy, name, where string,
	set func(r *Proxy, server int)) (hops []path.Hop) {
	p.Proxies = append([]path.Proxy{{Name: name, PID: relay.PID}}, p.Proxies...)
	if then := p.Facts["proxy"]; then != "" {
		p.Facts["proxy"] = name + ", then " + then
	} else {
		p.Facts["proxy"] = name
	}
	for i := range p.Servers {
		set(&relay, i)
		h := relay.Hop(p.Spec.UDP, kind, name, where)
		if p.Spec.UDP {
			return []path.Hop{h}
		}
		h.Clients = p.Spec.TalkTo(i)
		hops = append(hops, h)
	}
	return hops
}

// Quiet makes the proxy that was added last, given by its hop, a guard: it listens on the dialled
// port but must have no connection. The guard sees only open connections. The machine's own count
// of connections would include ended ones, but also those of other programs.
func Quiet(p *path.Path, space Space, proxy path.Hop) {
	pid := p.Proxies[len(p.Proxies)-1].PID
	p.Proxies = p.Proxies[:len(p.Proxies)-1]
	delete(p.Facts, "proxy")
	proxy = Unused(proxy)
	if !p.Spec.UDP {
		proxy.Read = func() (c sample.Counters, err error) {
			return c, space.Do(func() error {
				conns, err := sock.Of(pid)
				for _, x := range conns {
					c.ForwardBytes += x.Received
					c.BackwardBytes += x.Sent
				}
				return err
			})
		}
	}
	p.Guards = append(p.Guards, proxy)
}

// Sum returns a reader of the sum of all readers.
func Sum(all ...Reader) Reader {
	return func() (sum sample.Counters, err error) {
		for _, read := range all {
			c, err := read()
			if err != nil {
				return sum, err
			}
			sum = sum.Add(c)
		}
		return sum, nil
	}
}

// Unused returns the hop as a guard, which must not count the load.
func Unused(h path.Hop) path.Hop {
	h.Expect = path.Untouched
	return h
}

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
