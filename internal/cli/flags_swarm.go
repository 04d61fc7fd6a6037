package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/peer"
	"github.com/bridgetoll/bridgetoll/internal/paths/swarm"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

type swarmFlags struct {
	all *builderFlags

	at netip.AddrPort // the address, parsed
}

func (f *swarmFlags) add(fl *pflag.FlagSet, _ commandKind) {
	which := ": of the server, of the client (default the first two)"
	address := "this machine's address that the others dial, on a swarm also with :PORT (default as the swarm knows it, or as ssh uses it)"
	if f.all.mesh {
		which = " (default all that take tasks)"
		address = "this machine's address that the nodes dial, also with :PORT; with machines, the network over which they dial each other, such as 10.0.0.0/24 (default as the swarm knows it, or as ssh uses them)"
	}
	both := []string{swarm.Name, sample.Kubernetes}
	add(fl,
		flagDef{name: "nodes", group: where, value: list(&f.all.nodes), word: "NODES", of: both,
			help: "the nodes, by name or ID" + which, main: "mesh"},
		flagDef{name: "image", group: where, value: text(&f.all.image, ""), word: "IMAGE", of: both,
			help: "toll's image in a registry (default its own, which every node must have: see toll image)",
			use:  trusts},
		flagDef{name: "address", group: where, value: text(&f.all.address, ""), word: "ADDRESS",
			of: []string{swarm.Name, peer.Name}, help: address, use: trusts})
}

func (f *swarmFlags) defaults(others []string) (*defaults, error) {
	if len(others) > 0 {
		return nil, nil
	}
	return &defaults{
		mesh: string(mode.Host),
		from: []mode.Placement{mode.FromRemote, mode.FromRemoteContainer},
		one:  mode.FromRemoteContainer,
	}, nil
}

// checkNames returns an error if one of --nodes has no name.
func checkNames(nodes []string) error {
	if slices.Contains(nodes, "") {
		return usage(errors.New("--nodes has an empty name"), "--nodes a,b")
	}
	return nil
}

func notTwoNodes(n int, hint string) error {
	return usage(fmt.Errorf(
		"--nodes takes two nodes, the server's and the client's, not %d", n), hint)
}

func (f *swarmFlags) check() error {
	if n := len(f.all.nodes); n != 0 && n != 2 && !f.all.mesh {
		return notTwoNodes(n, "toll mesh measures every pair of nodes")
	}
	if err := checkNames(f.all.nodes); err != nil {
		return err
	}
	if f.all.address == "" {
		return nil
	}
	at, err := netip.ParseAddrPort(f.all.address)
	if err != nil {
		addr, addrErr := netip.ParseAddr(f.all.address)
		if addrErr != nil {
			return usage(fmt.Errorf("--address %q: must be an address of this machine", f.all.address),
				"--address 192.0.2.1 or --address 192.0.2.1:7000")
		}
		at = netip.AddrPortFrom(addr, 0)
	}
	if at.Addr().Unmap().IsUnspecified() {
		return usage(fmt.Errorf("--address %s: the nodes' agents cannot dial %s", f.all.address,
			at.Addr()),
			"the address of this machine that the nodes reach: --address 192.0.2.1")
	}
	f.at = at
	return nil
}

func (f *swarmFlags) with(_ context.Context, _ sample.Wire, use func(path.Builder) error) error {
	return closing(&swarm.Swarm{Nodes: f.all.nodes, Most: f.all.mostNodes(), Image: f.all.image,
		Control: f.at, Version: version}, use)
}

// mostNodes returns the number of nodes that a run needs, or 0 for all.
func (f *builderFlags) mostNodes() int {
	if f.mesh {
		return 0
	}
	return 2 // a server's and a client's
}
