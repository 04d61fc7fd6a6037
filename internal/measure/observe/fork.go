package observe

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/prometheus/procfs"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
)

// senders notes which processes sent the packets of some sightings of TCP, as far as they left a
// socket that is still open. known has the sockets whose process was looked for; it bounds these,
// because that takes some ms.
func (w *Watch) senders(all []sighting, known map[netip.AddrPort]bool) {
	const most = 16
	byInode := map[uint32][]*sighting{}
	tables := map[int][]sock.Socket{}
	for k := range all {
		s := &all[k]
		if s.opens || !s.out || w.udp || known[s.src] || len(known) == most {
			continue
		}
		known[s.src] = true
		if tables[s.space] == nil {
			_ = w.spaces[s.space].Visit(func() (err error) {
				tables[s.space], err = sock.Table()
				return err
			})
		}
		i := slices.IndexFunc(tables[s.space], func(x sock.Socket) bool {
			from := netip.AddrPortFrom(x.Local.Addr().Unmap(), x.Local.Port())
			return x.Inode != 0 && !x.Listening && from == s.src
		})
		if i >= 0 {
			inode := tables[s.space][i].Inode
			byInode[inode] = append(byInode[inode], s)
		}
	}
	if len(byInode) == 0 {
		return
	}
	processes, _ := procfs.AllProcs()
	for _, p := range processes {
		open, _ := sock.Inodes(p.PID)
		for inode, sent := range byInode {
			for _, s := range sent {
				if open[inode] && s.by == nil {
					s.by = map[uint32]bool{}
				}
				if open[inode] {
					maps.Copy(s.by, open)
				}
			}
		}
	}
}

// asked reports whether a hop's process asked another one.
func (h hop) asked(o hop) bool {
	for i := range h.inodes {
		if o.by[i] {
			return true
		}
	}
	return false
}

// forked returns a clause on a hop that asks several others about a request, of those that tokens
// may pass, as with a mirror of requests, or "". Which of them has the tokens is not known.
func (r *route) forked() string {
	passed := r.passed()
	for n, i := range passed[:len(passed)-1] {
		h, next := r.hops[i], r.hops[passed[n+1]]
		if len(next.inodes) == 0 || next.asked(h) {
			continue
		}
		for _, j := range passed[n+2:] {
			if relay := r.hops[j]; relay.asked(h) {
				return fmt.Sprintf("%s asks %s and %s about each request", relay.about.Place(),
					next.about.Place(), h.about.Place())
			}
		}
	}
	return ""
}
