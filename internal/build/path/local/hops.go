package local

import (
	"strconv"

	"github.com/bridgetoll/bridgetoll/internal/build/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/build/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Reader reads what was counted.
type Reader = func() (sample.Counters, error)

// LoopbackHop is a namespace's loopback device, which counts both directions as one.
func LoopbackHop(ns Space, where string) path.Hop {
	return path.Hop{Kind: mode.HopLoopback, Name: "lo", Where: where, Expect: path.CarriesBoth, Read: OneWay(Device(ns, "lo", true))}
}

// ContainerHop is a container's own device, a half of a pair if port names the other one.
func ContainerHop(kind mode.HopKind, ns Space, where, device, port string, toServer bool) path.Hop {
	h := path.Hop{Kind: kind, Name: device, Where: where, Read: Device(ns, device, toServer)}
	if port != "" {
		h.Name = port + "⇄" + device
	}
	return h
}

// BridgeHop is a bridge as its machine's own device: it counts what goes between the
// machine's stack and the containers.
func BridgeHop(ns Space, where, bridge string, toServer bool) path.Hop {
	return path.Hop{Kind: mode.HopBridge, Name: bridge, Where: where, Read: Device(ns, bridge, !toServer),
		Counts: [2]path.Counter{{Device: bridge, Sent: toServer}, {Device: bridge, Sent: !toServer}}}
}

// SwitchHop is a bridge as a switch: what it sent out of the ports towards the clients
// and out of those towards the servers. (A bridge's own counters do not count frames
// that it only forwards.)
func SwitchHop(where, bridge string, toClients, toServers Reader) path.Hop {
	return path.Hop{Kind: mode.HopBridge, Name: bridge + " ports", Where: where, Read: SentBy(toServers, toClients)}
}

// BridgeLegHop is a bridge that the load crosses twice, up to the proxy and down to the
// server: what the machine took in from the bridge ("in"), and what it sent out to it
// ("out"). Each counts both directions of the load, once a leg.
func BridgeLegHop(ns Space, where, bridge, leg string) path.Hop {
	return path.Hop{Kind: mode.HopBridge, Name: bridge + " " + leg, Where: where, Expect: path.CarriesBoth,
		Read: OneWay(Device(ns, bridge, leg == "in")), Counts: [2]path.Counter{{Device: bridge, Sent: leg != "in"}}}
}

// ReflectedHop is a card as the path to a switch that reflects, and back: what the card
// sent has both directions of the load, and so has what came back.
func ReflectedHop(ns Space, where, card string) path.Hop {
	return path.Hop{Kind: mode.HopWire, Name: card, Where: where, Expect: path.CarriesBoth, Read: OneWay(Device(ns, card, false))}
}

// ProxyHop is a docker-proxy of a path: its sockets or, of UDP, what it read and wrote.
// It is noted as the path's proxy.
func ProxyHop(p *path.Path, proxy Proxy, name, where string) path.Hop {
	p.Proxies = append(p.Proxies, path.Proxy{Name: name, PID: proxy.PID})
	p.Facts["proxy"] = name
	proxy.Beside = p.Spec.From == mode.FromHost
	h := path.Hop{Kind: mode.HopProxy, Name: name, Where: where + ", process " + strconv.Itoa(proxy.PID)}
	if p.Spec.UDP {
		h.Read = func() (sample.Counters, error) { return ProcessIO(proxy.PID) }
		return h
	}
	h.Expect, h.Read = path.Relays, proxy.Relayed()
	return h
}

// Quiet makes the proxy that was noted last, given as its hop, a guard: it listens to the
// dialled port, and must have no connection. (The TCP of its machine, which tells of ended
// ones, is others', too.)
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

// Sum adds up what several readers count.
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

// Unused turns a hop into a guard.
func Unused(h path.Hop) path.Hop {
	h.Expect = path.Untouched
	return h
}
