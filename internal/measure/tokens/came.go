package tokens

import (
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
)

// Client is where clients are, and the addresses to which their packets go there.
type Client struct {
	Space   int
	Dialled []netip.AddrPort
}

// has reports whether a connection is one of the client's.
func (c Client) has(k clientKey) bool {
	return k.space == c.Space && slices.Contains(c.Dialled, k.remote)
}

// Arrived returns when all bytes before an offset of a response stream were readable in a client's
// kernel, or false if that was not seen. Of the client's end only its port is known, because packet
// filters change its address, and a time at which the connection was open.
func (l *Log) Arrived(by Client, local uint16, at, offset int64) (ns int64, ok bool) {
	if a := l.cameTo(by, local, at); a != nil {
		return a.at(offset)
	}
	return 0, false
}

// cameTo returns what came to a client's port, of the last connection that was open by a time, or
// nil.
func (l *Log) cameTo(by Client, local uint16, at int64) (last *arrivals) {
	for _, k := range l.cameTos[portIn{by.Space, local}] {
		a := l.came[k]
		if by.has(k) && a.began <= at+slack && (last == nil || a.began > last.began) {
			last = a
		}
	}
	return last
}

// arrived handles a packet to a client.
func (l *Log) arrived(k clientKey, p *capture.Packet) {
	a := l.came[k]
	if p.Flags&(capture.SYN|capture.ACK) == capture.SYN|capture.ACK {
		if a == nil || a.base != p.Seq+1 {
			if a != nil && a.top > 0 {
				l.retire(k, p.At)
				a = nil
			}
			if a == nil {
				to := portIn{k.space, k.local.Port()}
				l.cameTos[to] = append(l.cameTos[to], k)
			}
			a = &arrivals{began: p.At}
			a.begin(p.Seq + 1)
			l.came[k] = a
		}
		return
	}
	if a != nil {
		a.add(p.At, p.Seq, p.Size)
	}
}

// retire keeps what was seen of a client's connection until a time, at which the client uses its
// port again, under a key of its own.
func (l *Log) retire(k clientKey, until int64) {
	before := k
	l.replaced++
	before.nth = l.replaced
	if q := l.asks[k]; q != nil {
		q.until = until
		l.asks[before] = q
		delete(l.asks, k)
	}
	if a := l.came[k]; a != nil {
		l.came[before] = a
		delete(l.came, k)
		all := l.cameTos[portIn{k.space, k.local.Port()}]
		all[slices.Index(all, k)] = before
	}
}
