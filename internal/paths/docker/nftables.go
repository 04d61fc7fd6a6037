package docker

import (
	"fmt"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/firewall"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// bridgesTable is the table of Docker Engine 29 with "firewall-backend": "nftables".
const bridgesTable = "docker-bridges"

// native reports whether the engine writes nf_tables rules itself. The daemon reports that since
// API 1.49.
func (e *engine) native() bool {
	// The value may also be nftables+firewalld.
	return e.Info.FirewallBackend != nil &&
		strings.HasPrefix(e.Info.FirewallBackend.Driver, "nftables")
}

func (s *site) nativeHop(kind mode.HopKind, expect path.Expect, table string,
	words ...string) (path.Hop, error) {
	said := strings.Join(words, " ")
	want := firewall.ParseRule(strings.Fields(said))
	var rules []nft.Counted
	family, of := nft.IPv4, ""
	if s.six() {
		family, of = nft.IPv6, "ip6 "
	}
	err := s.engine.ns.Do(func() (err error) {
		rules, err = nft.ReadTable(family, bridgesTable)
		return err
	})
	if err != nil {
		return path.Hop{}, err
	}
	first, ok := findNative(rules, table, want)
	if !ok {
		return path.Hop{}, fmt.Errorf("find Docker's rule %s %s: %w", bridgesTable, said, errNoRule)
	}
	var t tally
	return path.Hop{Kind: kind, Name: of + strings.Join(
		[]string{bridgesTable, first.Chain, said}, " "), Where: s.engine.name, Expect: expect,
		Read: func() (sample.Counters, error) {
			var rules []nft.Counted
			err := s.engine.ns.Do(func() (err error) {
				rules, err = nft.ReadChain(family, bridgesTable, first.Chain)
				return err
			})
			if err != nil {
				return sample.Counters{}, err
			}
			now, ok := findNative(rules, table, want)
			if !ok {
				return sample.Counters{}, errNoRule
			}
			return sample.Counters{Hits: t.add(now)}, nil
		}}, nil
}

func (e *engine) nativeRules6() error {
	var rules []nft.Counted
	err := e.ns.Do(func() (err error) {
		rules, err = nft.ReadTable(nft.IPv6, bridgesTable)
		return err
	})
	if err == nil && len(rules) == 0 {
		return errNoRule
	}
	return err
}

// tally adds up a rule's counts. dockerd rewrites chains whenever containers start or stop, and
// counters then restart at zero, so rules are identified by their content. Packets counted between
// the last read and a rewrite are lost. So a hop may count too few packets, never too many, and
// packets that a guard misses are also missing in the path's hops.
type tally struct {
	handle    uint64
	last, sum uint64 // the count since the last rewrite; the sum before it
}

func (t *tally) add(r nft.Counted) uint64 {
	if r.Handle != t.handle {
		t.sum += t.last
	}
	t.handle, t.last = r.Handle, r.Packets
	return t.sum + t.last
}

func findNative(rules []nft.Counted, table string, want firewall.Rule) (nft.Counted, bool) {
	for _, r := range rules {
		if r.Counts && strings.HasPrefix(r.Chain, table+"-") && r.Rule.Unread == "" &&
			implied(r).Has(want) {
			return r, true
		}
	}
	return nft.Counted{}, false
}

// implied adds the device that a chain's name implies: a verdict map sends only packets of that
// device to a network's own chain (libnetwork, nftabler/network.go).
func implied(r nft.Counted) firewall.Rule {
	way, bridge, ok := strings.Cut(r.Chain, "__")
	out := r.Rule
	switch {
	case !ok:
	case strings.HasSuffix(way, "-in") && out.Out.Name == "":
		out.Out = firewall.Device{Name: bridge}
	case strings.HasSuffix(way, "-out") && out.In.Name == "":
		out.In = firewall.Device{Name: bridge}
	}
	return out
}
