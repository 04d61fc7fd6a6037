package main

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/measure/endpoint"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/ports"
	"github.com/bridgetoll/bridgetoll/internal/ports/collect"
)

// locateServers returns a function that finds which server on this machine serves an endpoint,
// whether a docker-proxy is in between, and what slows the server down. Facts that cannot be read
// stay unknown without an error, because endpoints may be anywhere.
func locateServers() endpoint.Locate {
	var once sync.Once
	var facts *ports.Facts
	return func(ctx context.Context, remote string, from *vantage.Vantage) endpoint.Server {
		dial, err := netip.ParseAddrPort(remote)
		// A Unix socket, or another machine's address.
		if err != nil || !near(dial.Addr()) && from.PID() == 0 {
			return endpoint.Server{}
		}
		once.Do(func() { facts, _ = collect.Published(ctx) })
		if facts == nil {
			return endpoint.Server{}
		}
		var s endpoint.Server
		if behind, ok := ports.Through(facts, dial); ok && from.PID() == 0 {
			s.Behind = behind.String()
		}
		if c, ok := ports.ServerOf(facts, dial, from.PID()); ok {
			s.Container, s.PID = c.Name, c.PID
		} else if from.PID() == 0 {
			s.PID = ports.ProcessAt(facts, dial)
		}
		if s.PID != 0 {
			s.Strain = machine.Machine{}.StrainOf(s.PID).Own()
		}
		return s
	}
}

// near reports whether an address may belong to this machine or to a container on it.
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
