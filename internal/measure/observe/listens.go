package observe

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// listens sets which program receives what comes to a hop, and how that is told from what comes to
// others at its port. After an error, the program is unknown.
func (w *Watch) listens(h *hop) error {
	h.about = sample.EvidenceHop{Port: h.to.Port(), NetNS: w.spaces[h.space].ID}
	if h.protocol == tokens.HTTP2 {
		h.about.Unread = "is asked over HTTP/2"
	}
	if h.protocol == tokens.HTTP2 && !w.anyBytes { // events are followed
		h.about.Unread = "may answer over HTTP/2 with something else than events, lines of " +
			"JSON or their gzip"
	}
	var all listeners
	err := w.spaces[h.space].Visit(func() (err error) {
		if w.udp {
			all, err = sock.Datagram()
		} else {
			all, err = sock.Listeners()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("read who listens at port %d: %w", h.to.Port(), err)
	}
	all = slices.DeleteFunc(all, func(s sock.Socket) bool {
		return s.Local.Port() != h.to.Port() || !s.Listening
	})
	by := all.processes()
	names := map[string]bool{}
	own := map[int]bool{}
	h.inodes = map[uint32]bool{}
	for _, s := range all.at(h.to.Addr()) {
		h.inodes[s.Inode] = true
		if p, ok := by[s.Inode]; ok {
			own[p.pid], names[p.name] = true, true
		}
	}
	if len(own) == 0 {
		return nil
	}
	h.about.PID = slices.Min(slices.Collect(maps.Keys(own)))
	// With SO_REUSEPORT, the kernel spreads connections over them.
	h.about.Process = strings.Join(slices.Sorted(maps.Keys(names)), " and ")
	ours := func(s sock.Socket) bool { return own[by[s.Inode].pid] }
	var addrs []netip.Addr
	for _, s := range all {
		if ours(s) {
			addrs = append(addrs, s.Local.Addr())
		}
	}
	if len(addrs) == len(all) {
		return nil
	}
	h.addr = slices.MinFunc(addrs, netip.Addr.Compare)
	h.takes = func(to netip.Addr) bool {
		return to == h.to.Addr() || slices.ContainsFunc(all.at(to), ours)
	}
	return nil
}

// successor returns who receives what comes to a hop now: nil if that is unknown, or the same
// socket or process as before, and the zero value if nobody does.
func (w *Watch) successor(before hop) *sample.EvidenceHop {
	now := before
	if len(before.inodes) == 0 || w.listens(&now) != nil {
		return nil
	}
	for inode := range before.inodes {
		if now.inodes[inode] {
			return nil
		}
	}
	switch pid := now.about.PID; {
	case len(now.inodes) == 0:
		return &sample.EvidenceHop{}
	case pid != 0 && pid == before.about.PID: // it opened its socket anew
		return nil
	}
	return &now.about
}

// listeners are the sockets at a port of a namespace that receive what comes to its addresses.
type listeners []sock.Socket

// at returns those that receive what comes to an address. They are several with SO_REUSEPORT.
func (l listeners) at(to netip.Addr) listeners {
	wild := netip.IPv6Unspecified()
	choices := []netip.Addr{to, wild}
	if to.Is4() {
		choices = []netip.Addr{to, netip.IPv4Unspecified(), wild}
	}
	for _, addr := range choices {
		some := slices.Clone(l)
		some = slices.DeleteFunc(some, func(s sock.Socket) bool {
			return s.Local.Addr().Unmap() != addr || s.V6Only && to.Is4()
		})
		if len(some) > 0 {
			return some
		}
	}
	return nil
}

type process struct {
	pid  int
	name string
}

// processes returns the process of each socket by its inode. If several have it open, it is the one
// with the lowest number, but the first process of the machine, which may have opened it for
// another, only if no other has it.
func (l listeners) processes() map[uint32]process {
	out := map[uint32]process{}
	all, _ := procfs.AllProcs()
	slices.SortFunc(all, func(a, b procfs.Proc) int { return cmp.Compare(a.PID, b.PID) })
	if len(all) > 0 && all[0].PID == 1 {
		all = append(all[1:], all[0])
	}
	for _, p := range all {
		open, err := sock.Inodes(p.PID)
		if err != nil {
			continue
		}
		for _, s := range l {
			if _, known := out[s.Inode]; open[s.Inode] && !known {
				name, _ := p.Comm()
				out[s.Inode] = process{p.PID, printable.Words(name)}
			}
		}
		if len(out) == len(l) {
			break
		}
	}
	return out
}
