package observe

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/prometheus/procfs"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
)

// sender is the socket that sent a packet, by the packet's addresses in its namespace.
type sender struct {
	space    int
	src, dst netip.AddrPort
}

// senders looks for the processes that sent packets, beside the captures: that may take long on a
// machine of many connections. Not for concurrent use.
type senders struct {
	w      *Watch       // nil: nothing is looked for
	marked map[int]bool // namespaces in which a request was seen
	known  map[sender]bool
	next   []sender                        // those that no look is for yet
	by     map[sender]map[uint32]bool      // the sockets of their processes
	waits  bool                            // one of those sent a mark
	looks  int                             // begun for marks
	sealed int                             // begun for TLS alone
	found  chan map[sender]map[uint32]bool // nil: nobody looks
}

// senders returns those of a request whose hops are being found on this machine.
func (w *Watch) senders() *senders {
	l := &senders{marked: map[int]bool{}, known: map[sender]bool{}, by: map[sender]map[uint32]bool{}}
	if w.asking != "" && !w.udp {
		l.w = w
	}
	return l
}

// seals reports whether a packet that leaves is the first one of its socket with TLS since a request
// was seen in the namespace. greets means that TLS begins with it.
func (l *senders) seals(space int, p *capture.Packet, greets bool) bool {
	const most = 1000 // sockets
	return l.w != nil && p.Out && l.marked[space] && (greets || tokens.Sealed(p.Payload)) &&
		!l.known[sender{space, p.Src, p.Dst}] && len(l.known) < most
}

// look looks for the senders of those of some sightings that have a mark, or TLS, and leave a socket.
// While nobody can look, they wait for the next call or for note.
func (l *senders) look(all []sighting) {
	if l.w == nil {
		return
	}
	// Walks over all processes, besides note's. Others may send TLS all the time, so a few looks are
	// for that, which a gateway may send over a socket that it soon closes.
	const most, mostSealed = 4, 2
	for _, s := range all {
		if at := (sender{s.space, s.src, s.dst}); (s.marks || s.seals) && s.out && !l.known[at] {
			l.known[at], l.next = true, append(l.next, at)
			l.waits = l.waits || s.marks
		}
	}
	switch {
	case !l.settle(false) || len(l.next) == 0:
	case l.waits && l.looks < most:
		l.looks++
		l.begin()
	case !l.waits && l.sealed < mostSealed:
		l.sealed++
		l.begin()
	}
}

// begin begins a look for those that wait.
func (l *senders) begin() {
	if len(l.next) == 0 {
		return
	}
	l.waits = false
	next, found := l.next, make(chan map[sender]map[uint32]bool, 1)
	l.next, l.found = nil, found
	go func() { found <- l.w.sentBy(next) }()
}

// settle takes what was found. It reports whether nobody looks any more; a last call waits for
// that.
func (l *senders) settle(last bool) bool {
	if l.found == nil {
		return true
	}
	if !last && len(l.found) == 0 {
		return false
	}
	maps.Copy(l.by, <-l.found)
	l.found = nil
	return true
}

// note notes in sightings who sent them.
func (l *senders) note(all []sighting) {
	l.settle(true)
	l.begin()
	l.settle(true)
	for i, s := range all {
		all[i].by = l.by[sender{s.space, s.src, s.dst}]
	}
}

// sentBy returns the sockets of the processes that sent packets, as far as these left a socket that
// is still open.
func (w *Watch) sentBy(all []sender) map[sender]map[uint32]bool {
	inodes := map[uint32]sender{}
	tables := map[int][]sock.Socket{}
	for _, at := range all {
		if tables[at.space] == nil {
			_ = w.spaces[at.space].Visit(func() (err error) {
				tables[at.space], err = sock.Table()
				return err
			})
		}
		if inode := at.inode(tables[at.space]); inode != 0 {
			inodes[inode] = at
		}
	}
	out := map[sender]map[uint32]bool{}
	if len(inodes) == 0 {
		return out
	}
	processes, _ := procfs.AllProcs()
	for _, p := range processes {
		open, _ := sock.Inodes(p.PID)
		for inode, at := range inodes {
			if open[inode] && out[at] == nil {
				out[at] = map[uint32]bool{}
			}
			if open[inode] {
				maps.Copy(out[at], open)
			}
		}
	}
	return out
}

// inode returns that of the socket in a table, or 0 if it is not there, or answers others, as one
// whose port is listened on does. A packet filter may have changed where its packets go.
func (at sender) inode(table []sock.Socket) uint32 {
	unmapped := func(a netip.AddrPort) netip.AddrPort {
		return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
	}
	if slices.ContainsFunc(table, func(x sock.Socket) bool {
		return x.Proto == "tcp" && x.Listening && x.Local.Port() == at.src.Port()
	}) {
		return 0
	}
	var from []uint32
	for _, x := range table {
		if x.Proto != "tcp" || x.Inode == 0 || x.Listening || unmapped(x.Local) != at.src {
			continue
		}
		if unmapped(x.Remote) == at.dst {
			return x.Inode
		}
		from = append(from, x.Inode)
	}
	if len(from) == 1 {
		return from[0]
	}
	return 0
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

// asks returns where else than to the route's hops and clients a hop's process sent TLS while a
// request waited, or "".
func (r *route) asks(h hop) string {
	for _, s := range r.sealed {
		within := slices.ContainsFunc(r.hops, func(o hop) bool {
			return s.dst == o.to || s.space == o.space && s.src.Port() == o.to.Port()
		})
		if !within && h.asked(hop{by: s.by}) {
			return s.dst.String()
		}
	}
	return ""
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
