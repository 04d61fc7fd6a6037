package docker

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
)

// exemption exempts bridges from iptables. The kernel passes what a bridge forwards to iptables if
// the sysctl for all bridges or the bridge's own option is 1. So toll first sets the option of all
// other bridges to 1, then the sysctl to 0: the rules still see every frame on the other bridges.
type exemption struct {
	mu      sync.Mutex
	bridges []string // of open paths
	made    []dockerapi.Entry
}

// optionOf returns the name of a bridge's option in the journal. The option was 0 before. A sysctl,
// which was 1 before, is in the journal by its key.
func optionOf(bridge string, i int) string { return bridge + " " + link.BridgeNF[i] }

// exempt exempts one of toll's bridges until release is called. It must be called in the engine's
// network namespace, release outside of it.
func (e *engine) exempt(bridge string) (release func() error, err error) {
	x := &e.exempted
	x.mu.Lock()
	defer x.mu.Unlock()
	x.bridges = append(x.bridges, bridge)
	release = func() error {
		x.mu.Lock()
		defer x.mu.Unlock()
		i := slices.Index(x.bridges, bridge)
		x.bridges = slices.Delete(x.bridges, i, i+1)
		if len(x.bridges) > 0 {
			return nil
		}
		return e.endExemption()
	}
	return release, e.renewExemption()
}

// keepRules extends the exemption's changes to bridges that were made after it began.
func (e *engine) keepRules() error {
	e.exempted.mu.Lock()
	defer e.exempted.mu.Unlock()
	return e.ns.Do(e.renewExemption)
}

func (e *engine) renewExemption() error {
	x := &e.exempted
	if len(x.bridges) == 0 {
		return nil
	}
	for i, key := range local.BridgeNF {
		now, err := sysctl.Get(key)
		if i > 0 && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if now != "1" && !x.has(key) {
			continue
		}
		if err := errors.Join(e.keepOthers(i), e.note(key)); err != nil {
			return err
		}
		if err := sysctl.Set(key, "0"); err != nil {
			return err
		}
		if err := e.keepOthers(i); err != nil { // bridges made in between
			return err
		}
	}
	return nil
}

func (x *exemption) has(name string) bool {
	return slices.Contains(x.made, dockerapi.Entry{Kind: dockerapi.Setting, Name: name})
}

func (e *engine) keepOthers(option int) error {
	all, err := link.BridgesNF()
	if err != nil {
		return err
	}
	for name, set := range all {
		exempt := slices.Contains(e.exempted.bridges, name)
		if set[option] != exempt {
			continue
		}
		if !exempt {
			if err := e.note(optionOf(name, option)); err != nil {
				return err
			}
		}
		err := link.SetBridgeNF(name, option, !exempt)
		if err != nil && !errors.Is(err, link.ErrGone) {
			return err
		}
	}
	return nil
}

func (e *engine) note(name string) error {
	if e.exempted.has(name) {
		return nil
	}
	if err := e.Journal.Add(dockerapi.Setting, name); err != nil {
		return err
	}
	e.exempted.made = append(e.exempted.made, dockerapi.Entry{Kind: dockerapi.Setting, Name: name})
	return nil
}

func (e *engine) endExemption() error {
	var errs []error
	for _, m := range restoring(e.exempted.made) {
		if _, err := restoreSetting(e.ns, m.Name); err != nil {
			errs = append(errs, err)
			continue
		}
		e.Journal.Gone(m.Kind, m.Name)
	}
	e.exempted.made = nil
	return errors.Join(errs...)
}

// restoring returns settings in the order in which they are restored: sysctls first.
func restoring(all []dockerapi.Entry) (out []dockerapi.Entry) {
	for _, ofBridge := range []bool{false, true} {
		for _, m := range all {
			if m.Kind == dockerapi.Setting && strings.Contains(m.Name, " ") == ofBridge {
				out = append(out, m)
			}
		}
	}
	return out
}

// restoreSetting restores a setting that an exemption has changed. was is false if it did not,
// because another program has changed the setting since, or the name is unknown.
func restoreSetting(ns *netns.NS, name string) (was bool, err error) {
	bridge, option, ofBridge := strings.Cut(name, " ")
	err = ns.Do(func() error {
		if !ofBridge {
			if !slices.Contains(local.BridgeNF, name) {
				return nil
			}
			was, err = restoreSysctl(name)
			return err
		}
		i := slices.Index(link.BridgeNF[:], option)
		if i < 0 {
			return nil
		}
		all, err := link.BridgesNF()
		if err != nil || !all[bridge][i] {
			return err
		}
		was = true
		if err := link.SetBridgeNF(bridge, i, false); !errors.Is(err, link.ErrGone) {
			return err
		}
		return nil
	})
	return was && err == nil, err
}

// restoreSysctl does so for a sysctl. One that is gone with br_netfilter is 1 when that is loaded
// again.
func restoreSysctl(key string) (was bool, err error) {
	switch now, err := sysctl.Get(key); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil || now != "0":
		return false, err
	}
	return true, sysctl.Set(key, "1")
}

// setBridgeNF sets whether iptables sees what one of toll's bridges forwards. It must be called in
// the engine's network namespace.
func (s *site) setBridgeNF(bridge string, on bool) error {
	if !on {
		release, err := s.engine.exempt(bridge)
		s.path.Undo.Push("let iptables see "+bridge, release)
		return err
	}
	for i, key := range local.BridgeNF {
		now, err := sysctl.Get(key)
		if err == nil && now != "1" {
			err = link.SetBridgeNF(bridge, i, true)
		}
		if err != nil && (i == 0 || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return nil
}

// seen returns "1" if iptables sees what the path's bridges forward, else "0". ok is false without
// an exemption: then the sysctl alone decides.
func (s *site) seen() (value string, ok bool) {
	x := &s.engine.exempted
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.has(bridgeNF) {
		return "", false
	}
	if slices.ContainsFunc(s.bridges, func(b string) bool { return slices.Contains(x.bridges, b) }) {
		return "0", true
	}
	return "1", true
}

// exempting reports whether the sysctl is 0 because of an exemption.
func (e *engine) exempting() bool {
	e.exempted.mu.Lock()
	defer e.exempted.mu.Unlock()
	return e.exempted.has(bridgeNF)
}

func (e *engine) checkBridgeNF() error {
	if e.rootless {
		return &machine.UnsupportedError{
			Missing: "bridge-nf: the bridges of a rootless engine are in another network namespace",
			Remedy:  "--on lab"}
	}
	err := e.ns.Do(func() error { return sysctl.Writable(bridgeNF) })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &machine.UnsupportedError{Missing: "bridge-nf: there is no " + bridgeNF +
			" (CONFIG_BRIDGE_NETFILTER)", Remedy: remedy.Modprobe("br_netfilter"), Err: err}
	case err != nil:
		return &machine.UnsupportedError{Missing: "bridge-nf: only root can set " + bridgeNF,
			Remedy: "run toll as root", Err: err}
	}
	return nil
}
