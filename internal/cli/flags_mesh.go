package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/peer"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

var machineName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$`)

type meshPeers struct {
	all   *builderFlags
	hosts []string // the command's arguments
	how   peerHow

	to    []peer.Host  // hosts, parsed
	names []string     // names of the machines; "": as written
	in    netip.Prefix // the address, parsed
}

func (f *meshPeers) add(fl *pflag.FlagSet, _ commandKind) {
	f.how.add(fl)
}

func (f *meshPeers) defaults([]string) (*defaults, error) {
	return &defaults{mesh: string(mode.Native)}, nil
}

func (f *meshPeers) check() error {
	f.to, f.names = nil, nil
	const example = "toll mesh localhost b rack2=me@c:2222, as for ssh"
	if len(f.hosts) == 0 {
		return usage(errors.New("--on peer needs machines"), example)
	}
	for _, word := range f.hosts {
		if err := f.read(word, example); err != nil {
			return err
		}
	}
	if len(f.to) < 2 {
		return usage(fmt.Errorf("only one machine was given, %s: toll mesh needs at least two",
			f.to[0]),
			"toll mesh localhost "+f.to[0].String()+" measures between this machine and that one")
	}
	if err := f.how.check(); err != nil || f.all.address == "" {
		return err
	}
	in, err := netip.ParsePrefix(f.all.address)
	if err != nil {
		return usage(fmt.Errorf("--address %q: must be a network", f.all.address),
			"--address 10.0.0.0/24")
	}
	f.in = in.Masked()
	return nil
}

// read adds the machine that word names, [NAME=]HOST.
func (f *meshPeers) read(word, example string) error {
	name, host, named := strings.Cut(word, "=")
	if !named {
		name, host = "", word
	}
	h, err := peer.ParseHost(host)
	switch {
	case err != nil:
		return usage(err, example)
	case named && !machineName.MatchString(name):
		return usage(fmt.Errorf("%q is not a valid name for a machine", name),
			"at most 40 letters, digits, dots, dashes and underscores: rack2="+h.String())
	case slices.Contains(f.to, h):
		return usage(fmt.Errorf("%s is named twice", h), "name each machine once")
	}
	for i, other := range f.to {
		if name == "" && f.names[i] == "" {
			continue // both are shown as written, and the texts differ
		}
		if mine := cmp.Or(name, h.Name); mine == cmp.Or(f.names[i], other.Name) {
			return usage(fmt.Errorf("two machines are called %s", mine),
				"name them, as in other="+h.String())
		}
	}
	f.to, f.names = append(f.to, h), append(f.names, name)
	return nil
}

func (f *meshPeers) with(_ context.Context, _ sample.Wire, use func(path.Builder) error) error {
	return closing(&peer.Cluster{Hosts: f.to, Names: f.names, Network: f.in,
		Binary: f.how.binary, Sudo: f.how.sudo, Version: version}, use)
}

type meshCluster interface {
	path.Builder
	// Cluster starts an agent on each node. without holds the errors of nodes without one, by name.
	Cluster(context.Context) (nodes []sample.Node, without map[string]error, err error)
}
