package tokens

import (
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/writes"
)

// askers has what clients of this machine did at their UDP sockets.
type askers struct {
	asked map[askedKey]map[pair][]writes.Event // by the datagrams' ends, the server's first
	reads map[asker][]writes.Event
}

// asker is a client's socket.
type asker struct {
	netns uint32
	port  uint16
}

// askedKey has what is known of a request beside its ends.
type askedKey struct {
	head uint32
	size int
}

// add adds a request, or a reply that was read. It reports whether the event is one.
func (a *askers) add(p pair, e *writes.Event) bool {
	switch {
	case e.Kind == writes.Asked:
		if a.asked == nil {
			a.asked, a.reads = map[askedKey]map[pair][]writes.Event{}, map[asker][]writes.Event{}
		}
		k := askedKeyOf(e.Seq, int(e.Len))
		if a.asked[k] == nil {
			a.asked[k] = map[pair][]writes.Event{}
		}
		to := pair{p.remote, p.local}
		a.asked[k][to] = append(a.asked[k][to], *e)
		return true
	case e.Kind == writes.Read && a.asked != nil:
		by := asker{e.NetNS, e.Socket}
		a.reads[by] = append(a.reads[by], *e)
		return true
	}
	return false
}

func askedKeyOf(head uint32, size int) askedKey {
	if size < headSize {
		head = 0
	}
	return askedKey{head, size}
}

// had returns what a query's client had of it, or the zero value.
func (l *Log) had(q *query) (h had) {
	by := l.askers.asked[askedKeyOf(q.request.head, q.request.size)]
	socket := q.of.pair
	if by[socket] == nil {
		socket = q.translated(by, func(p pair) bool {
			k := q.of.dialogKey
			k.pair = p
			return l.dialogs[k] != nil
		})
	}
	first, end := q.sends(by[socket])
	if first == end {
		return h
	}
	e := by[socket][first]
	by[socket] = by[socket][end:]
	from := asker{e.NetNS, e.Socket}
	reads := l.askers.reads[from]
	i := slices.IndexFunc(reads, func(r writes.Event) bool {
		return r.At >= q.reply.at-slack && int(r.Len) == q.reply.size
	})
	if i < 0 {
		return h
	}
	h = had{wrote: min(e.At, q.request.at), read: max(reads[i].At, q.reply.at)}
	l.askers.reads[from] = slices.Delete(reads, i, i+1)
	return h
}

// sends returns the range of a list in which a query passed its client's devices.
func (q *query) sends(list []writes.Event) (first, end int) {
	const longest = int64(time.Second) // on the way
	for end < len(list) && list[end].At <= q.request.at+slack {
		if end++; list[end-1].At < q.request.at-longest {
			first = end
		}
	}
	return first, end
}

// translated returns the only ends under which a query left a client, of those that no client has at
// the server, or the zero value: a packet filter changed its addresses.
func (q *query) translated(by map[pair][]writes.Event, known func(pair) bool) (socket pair) {
	for p, list := range by {
		if first, end := q.sends(list); first == end || known(p) {
			continue
		}
		if socket != (pair{}) {
			return pair{}
		}
		socket = p
	}
	return socket
}

// trim forgets what was done before a time.
func (a *askers) trim(before int64) {
	old := func(e writes.Event) bool { return e.At < before }
	for k, by := range a.asked {
		for p, list := range by {
			if by[p] = slices.DeleteFunc(list, old); len(by[p]) == 0 {
				delete(by, p)
			}
		}
		if len(by) == 0 {
			delete(a.asked, k)
		}
	}
	for k, list := range a.reads {
		if a.reads[k] = slices.DeleteFunc(list, old); len(a.reads[k]) == 0 {
			delete(a.reads, k)
		}
	}
}
