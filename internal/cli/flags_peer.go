package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"

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
