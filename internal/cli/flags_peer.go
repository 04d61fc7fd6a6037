package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/peer"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const peerFlag = "peer"

type peerFlags struct {
	all  *builderFlags // nil: the peer does not dial this machine
	host string
	how  peerHow

	to peer.Host  // host, parsed
	at netip.Addr // the address, parsed
}

func (f *peerFlags) add(fl *pflag.FlagSet, _ commandKind) {
	f.addHost(fl, "the client's machine, which ssh reaches (--on peer may be left out)")
	f.how.add(fl)
}

func (f *peerFlags) addHost(fl *pflag.FlagSet, help string) {
	add(fl, ofPeer(flagDef{name: peerFlag, value: text(&f.host, ""), word: "HOST",
		help: "[user@]HOST[:PORT], " + help, main: "compare ladder path run stream sql"}))
}

func ofPeer(x flagDef) flagDef {
	x.group, x.of, x.use = where, []string{peer.Name}, trusts
	return x
}

type peerHow struct {
	binary string
	sudo   bool
}

func (f *peerHow) add(fl *pflag.FlagSet) {
	add(fl,
		ofPeer(flagDef{name: "peer-binary", value: text(&f.binary, ""), word: "FILE",
			help: "the toll to copy there, for a machine of another architecture (default this toll)"}),
		ofPeer(flagDef{name: "peer-sudo", value: toggle(&f.sudo),
			help: "run toll there as root, by sudo -n"}))
}

func (f *peerHow) check() error {
	if f.binary == "" {
		return nil
	}
	if _, err := os.Stat(f.binary); err != nil {
		return usage(fmt.Errorf("--peer-binary: %w", err), "give a toll binary of this version")
	}
	return nil
}

func (f *peerFlags) defaults(others []string) (*defaults, error) {
	if len(others) > 0 {
		return nil, nil
	}
	return &defaults{
		modes: peer.Modes(), from: []mode.Placement{mode.FromRemote}, baseline: mode.Native,
	}, nil
}

func (f *peerFlags) check() (err error) {
	if f.host == "" {
		return usage(errors.New("--on peer needs --peer"), "--peer [user@]HOST[:PORT], as for ssh")
	}
	if f.to, err = peer.ParseHost(f.host); err != nil {
		return usage(fmt.Errorf("--peer: %w", err), "--peer [user@]HOST[:PORT], as for ssh")
	}
	if err := f.how.check(); err != nil {
		return err
	}
	if f.all == nil || f.all.address == "" {
		return nil
	}
	if f.at, err = netip.ParseAddr(f.all.address); err != nil || f.at.IsUnspecified() ||
		f.at.IsMulticast() {
		return usage(fmt.Errorf("--address %q: must be an address of this machine", f.all.address),
			"--address 192.0.2.1")
	}
	f.at = f.at.Unmap()
	return nil
}

func (f *peerFlags) with(_ context.Context, _ sample.Wire, use func(path.Builder) error) error {
	return closing(f.machine(), use)
}

// machine returns the peer. check must have succeeded before.
func (f *peerFlags) machine() *peer.Peer {
	return &peer.Peer{Host: f.to, Address: f.at, Binary: f.how.binary, Sudo: f.how.sudo,
		Version: version}
}

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
