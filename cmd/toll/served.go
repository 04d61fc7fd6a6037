package main

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"github.com/bridgetoll/bridgetoll/internal/build/vantage"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/measure/endpoint"
	"github.com/bridgetoll/bridgetoll/internal/ports"
	"github.com/bridgetoll/bridgetoll/internal/ports/collect"
)

// serverLimits finds what of this machine serves endpoints, and the CPU limits of
// containers among them. What cannot be read is not known, which is no error: endpoints may be anywhere.
func serverLimits() endpoint.Locate {
	var once sync.Once
	var facts *ports.Facts
	return func(ctx context.Context, remote string, from *vantage.Vantage) endpoint.Server {
		dial, err := netip.ParseAddrPort(remote)
		if err != nil || !near(dial.Addr()) && from.PID() == 0 { // a Unix socket, or another machine's
			return endpoint.Server{}
		}
		once.Do(func() { facts, _ = collect.Published(ctx) })
		if facts == nil {
			return endpoint.Server{}
		}
		c, ok := ports.ServerOf(facts, dial, from.PID())
		switch {
		case ok:
			return endpoint.Server{Container: c.Name, PID: c.PID, Stops: machine.Machine{}.ThrottlerOf(c.PID)}
		case from.PID() == 0:
			return endpoint.Server{PID: ports.ProcessAt(facts, dial)}
		}
		return endpoint.Server{}
	}
}

// near reports whether an address may be of this machine or of a container on it.
func near(a netip.Addr) bool {
	a = a.Unmap()
	if a.IsLoopback() {
		return true
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, x := range all {
		if p, err := netip.ParsePrefix(x.String()); err == nil && p.Contains(a) {
			return true
		}
	}
	return false
}
