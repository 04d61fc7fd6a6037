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

// serverLimits finds the containers of this machine that serve endpoints, and their CPU
// limits. What cannot be read is not known, which is no error: endpoints may be anywhere.
func serverLimits() endpoint.Locate {
	var once sync.Once
	var facts *ports.Facts
	return func(ctx context.Context, remote string, from *vantage.Vantage) (string, func() int) {
		dial, err := netip.ParseAddrPort(remote)
		if err != nil || !near(dial.Addr()) && from.PID() == 0 { // a Unix socket, or another machine's
			return "", nil
		}
		once.Do(func() { facts, _ = collect.Published(ctx) })
		if facts == nil {
			return "", nil
		}
		c, ok := ports.ServerOf(facts, dial, from.PID())
		if !ok {
			return "", nil
		}
		return c.Name, machine.Machine{}.ThrottlerOf(c.PID)
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
