package observe

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/prometheus/procfs"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
)

// mostSenders bounds the packets of one request whose senders are looked for, which takes some ms.
const mostSenders = 8

// senders returns a function that notes which processes sent a packet, of the first ones that leave
// different sockets.
func (w *Watch) senders() func(*sighting) {
	type socket struct {
		space int
		at    netip.AddrPort
	}
	known := map[socket]bool{}
	return func(s *sighting) {
		at := socket{s.space, s.src}
		if !s.out || w.udp || known[at] || len(known) == mostSenders {
			return
		}
		known[at] = true
		var all []sock.Socket
		err := w.spaces[s.space].Visit(func() (err error) {
			all, err = sock.Table()
			return err
		})
		i := slices.IndexFunc(all, func(x sock.Socket) bool {
			a := x.Local
			return x.Inode != 0 && !x.Listening && netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) == s.src
		})
		if err == nil && i >= 0 {
			s.by = socketsOfOwners(all[i].Inode)
		}
	}
}

// socketsOfOwners returns the inodes of all sockets of the processes that have one open, or nil.
func socketsOfOwners(inode uint32) (out map[uint32]bool) {
	all, _ := procfs.AllProcs()
	for _, p := range all {
		open, err := sock.Inodes(p.PID)
		if err != nil || !open[inode] {
			continue
		}
		if out == nil {
			out = open
			continue
		}
		for i := range open {
			out[i] = true
		}
	}
	return out
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

// forked returns a clause on a hop that asks several others about a request, of those that tokens may pass,
// as with a mirror of requests, or "". Which of them has the tokens is not known.
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
