package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/build/path"
	"github.com/bridgetoll/bridgetoll/internal/build/peer"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// meshPeersFlag names the machines of a mesh without a swarm.
const meshPeersFlag = "peers"

// meshPeers are the flags of a mesh of machines that ssh reaches.
type meshPeers struct {
	hosts   []string
	network string
	how     peerHow

	to []peer.Host  // hosts, as understood
	in netip.Prefix // network, as understood
}

func (f *meshPeers) add(fl *pflag.FlagSet) {
	fl.StringSliceVar(&f.hosts, meshPeersFlag, nil, "peer: the machines, as ssh takes them: [user@]HOST[:PORT],…; localhost is this one (--on peer may be left out)")
	fl.StringVar(&f.network, "peers-network", "", "peer: where the machines dial each other, such as 10.0.0.0/24 (default where ssh reaches them)")
	f.how.add(fl)
}

// check reads the flags.
func (f *meshPeers) check() error {
	const example = "--peers a,b,c, as for ssh"
	if len(f.hosts) == 0 {
		return usage(errors.New("--on peer needs --peers"), example)
	}
	seen := map[peer.Host]bool{}
	for _, s := range f.hosts {
		h, err := peer.ParseHost(s)
		if err != nil {
			return usage(fmt.Errorf("--peers: %w", err), example)
		}
		if seen[h] {
			return usage(fmt.Errorf("--peers: %s is named twice", h), "name each machine once")
		}
		seen[h] = true
		f.to = append(f.to, h)
	}
	if len(f.to) < 2 {
		return usage(fmt.Errorf("--peers names one machine, %s: a mesh is measured between two at least", f.to[0]), "--peers localhost,"+f.to[0].String()+" measures between this machine and that one")
	}
	if err := f.how.check(); err != nil || f.network == "" {
		return err
	}
	in, err := netip.ParsePrefix(f.network)
	if err != nil {
		return usage(fmt.Errorf("--peers-network %q: must be a network", f.network), "--peers-network 10.0.0.0/24")
	}
	f.in = in.Masked()
	return nil
}

func (f *meshPeers) backend() cluster {
	return &peer.Cluster{Hosts: f.to, Network: f.in, Binary: f.how.binary, Sudo: f.how.sudo, Version: version}
}

// cluster is a backend that has nodes.
type cluster interface {
	path.Builder
	// Cluster brings an agent to each node and says what they are, and of those that get
	// none why, by name.
	Cluster(context.Context) (nodes []sample.Node, without map[string]error, err error)
	Close() error
}
