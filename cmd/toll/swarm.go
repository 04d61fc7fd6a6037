package main

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/swarm"
)

// swarmFlags are the flags of runs on a swarm.
type swarmFlags struct {
	nodes          []string
	image, control string

	at netip.AddrPort // control, as understood
}

func (f *swarmFlags) add(fl *pflag.FlagSet) {
	fl.StringSliceVar(&f.nodes, "nodes", nil, "swarm: the nodes, by name or ID: of the server, of the client (default the first two)")
	f.addHow(fl)
}

// addHow adds how toll gets to the nodes, and they to toll.
func (f *swarmFlags) addHow(fl *pflag.FlagSet) {
	fl.StringVar(&f.image, "image", "", "swarm: toll's image in a registry (default its own, which every node must have: see toll image)")
	fl.StringVar(&f.control, "control", "", "swarm: ADDRESS or ADDRESS:PORT of this machine, where the nodes' agents reach toll (default as the swarm knows it)")
}

// adapt makes the flags of a comparison those of one on a swarm, if it is on one:
// between machines, and on CPUs that nobody chooses.
func (f *swarmFlags) adapt(r *runFlags, given *pflag.FlagSet) error {
	if !slices.Equal(r.on, []string{swarm.Name}) {
		return nil
	}
	if !given.Changed("from") {
		r.from = []string{string(mode.FromRemoteContainer)}
		if given.Lookup("baseline") != nil { // other studies have one placement
			r.from = []string{string(mode.FromRemote), string(mode.FromRemoteContainer)}
		}
	}
	return f.unpinned(r, given)
}

// fit refuses the flags if no swarm is used, and reads them.
func (f *swarmFlags) fit(on []string) error {
	if !slices.Contains(on, swarm.Name) {
		for flag, given := range map[string]bool{"nodes": len(f.nodes) > 0, "image": f.image != "", "control": f.control != ""} {
			if given {
				return usage(fmt.Errorf("--%s is for swarm only", flag), "--on swarm, or leave --"+flag+" out")
			}
		}
		return nil
	}
	if n := len(f.nodes); n != 0 && n != 2 {
		return usage(fmt.Errorf("--nodes names two nodes, the server's and the client's; %d were given", n), "toll mesh measures every pair of nodes")
	}
	return f.check()
}

// unpinned refuses CPU numbers, which differ between machines.
func (f *swarmFlags) unpinned(r *runFlags, given *pflag.FlagSet) error {
	if given.Changed("pin") && r.pin != "none" {
		return usage(fmt.Errorf("--pin %s: client and server are on machines of their own", r.pin), "leave --pin out")
	}
	r.pin = "none"
	return nil
}

// check reads the flags.
func (f *swarmFlags) check() error {
	if slices.Contains(f.nodes, "") {
		return usage(errors.New("--nodes: one has no name"), "--nodes a,b")
	}
	if f.control == "" {
		return nil
	}
	at, err := netip.ParseAddrPort(f.control)
	if err != nil {
		addr, addrErr := netip.ParseAddr(f.control)
		if addrErr != nil {
			return usage(fmt.Errorf("--control %q: must be an address of this machine", f.control), "--control 192.0.2.1 or --control 192.0.2.1:7000")
		}
		at = netip.AddrPortFrom(addr, 0)
	}
	if at.Addr().Unmap().IsUnspecified() {
		return usage(fmt.Errorf("--control %s: the nodes' agents cannot dial %s", f.control, at.Addr()), "the address of this machine by which the nodes reach it: --control 192.0.2.1")
	}
	f.at = at
	return nil
}

func (f *swarmFlags) backend() *swarm.Swarm {
	return &swarm.Swarm{Nodes: f.nodes, Image: f.image, Control: f.at, Version: version}
}
