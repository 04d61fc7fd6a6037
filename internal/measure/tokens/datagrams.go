package tokens

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/kernel/writes"
)

// datagram is a UDP packet as a device saw it. Its payload is not kept.
type datagram struct {
	at   int64  // ns; 0: there is none
	sum  uint64 // of its first bytes and its size
	head uint32 // its first four bytes, in which DNS has a message's number and flags
	size int
	dns  bool // it has the form of a message of DNS
	both bool // its protocol is one in which both sides send what answers nothing
	seal seal
}

// Bits of the head of a message of DNS.
const (
	dnsReply     = 1 << 15
	dnsCode      = 0xf
	dnsNumberAt  = 16 // bits
	headSize     = 4  // bytes
	dnsHeader    = 12 // bytes
	dnsOperation = 11 // bits
	mostDNS      = 6  // the highest operation
)

var sumSeed = maphash.MakeSeed()

// SumOf returns a number that identifies the bytes of a datagram, which packet filters and relays
// do not change, in captures of one size and of this process.
func SumOf(p *capture.Packet) uint64 {
	return maphash.Bytes(sumSeed, p.Payload) + uint64(p.Size)
}

func datagramOf(p *capture.Packet) datagram {
	d := datagram{at: p.At, sum: SumOf(p), size: p.Size}
	if len(p.Payload) >= headSize {
		d.head = binary.BigEndian.Uint32(p.Payload)
	}
	if len(p.Payload) >= dnsHeader && d.head>>dnsOperation&0xf <= mostDNS {
		questions := binary.BigEndian.Uint16(p.Payload[4:])
		answers := binary.BigEndian.Uint16(p.Payload[6:])
		d.dns = questions == 1 && answers == 0 || questions <= 1 && d.head&dnsReply != 0
	}
	if !d.dns {
		d.both, d.seal = opensQUIC(p.Payload), sealOf(p.Payload, p.Size)
	}
	return d
}

// answers reports whether a message of DNS is the reply to another one.
func (d datagram) answers(request datagram) bool {
	return d.dns && request.dns && d.head&dnsReply != 0 &&
		d.head>>dnsNumberAt == request.head>>dnsNumberAt
}

// code returns the code of a reply of DNS that is an error, such as SERVFAIL, or "".
func (d datagram) code() string {
	if !d.dns {
		return ""
	}
	return CodeOf(int(d.head & dnsCode))
}

// CodeOf returns the name of a response code of DNS; "" for no error.
func CodeOf(code int) string {
	names := [...]string{"", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"}
	if code < len(names) {
		return names[code]
	}
	return fmt.Sprintf("RCODE %d", code)
}

// query is a request and its reply.
type query struct {
	of             *dialog
	request, reply datagram
	taken          bool // by an exchange
}

// dialog has the datagrams between two sockets, as one end's devices saw them.
type dialog struct {
	dialogKey
	devices [2]int // in which requests and replies were first seen: others see the same packets
	queries []*query
	waiting []*query // those without a reply
	strays  int      // replies to no request
	both    bool     // sides send what answers nothing
	hides   hides
	seals   [2]seal // the last ones of each way
	had     int64   // when the client had read all replies so far; 0: unknown
}

type dialogKey struct {
	clientKey
	serves Place // that receives the requests; zero: the end sends them
}

// served reports whether the end receives the requests.
func (k dialogKey) served() bool { return k.serves != Place{} }

// Requests that wait longer for their reply are lost. Without numbers, a reply may be another
// request's, so that these are not waited for as long.
const (
	longestDNS   = int64(10 * time.Second)
	longestOther = int64(2 * time.Second)
)

// lost reports whether a request without a reply is not waited for any longer.
func (q *query) lost(now int64) bool {
	longest := longestOther
	if q.request.dns {
		longest = longestDNS
	}
	return now-q.request.at > longest
}

// addDatagram adds a UDP packet that was seen in a namespace.
func (l *Log) addDatagram(space int, p *capture.Packet) {
	in, out := clientKey{space: space, pair: pair{p.Dst, p.Src}},
		clientKey{space: space, pair: pair{p.Src, p.Dst}}
	x := datagramOf(p)
	l.latest = max(l.latest, p.At)
	if at, ok := l.serverAt(space, p.Dst); ok && !p.Out {
		l.dialog(dialogKey{in, at}).ask(p.Device, x)
	}
	if at, ok := l.serverAt(space, p.Src); ok && p.Out {
		l.dialog(dialogKey{out, at}).answer(p.Device, x)
	}
	if p.Out && l.dials(space, p.Dst) {
		l.dialog(dialogKey{clientKey: out}).ask(p.Device, x)
	}
	if !p.Out && l.dials(space, p.Src) {
		l.dialog(dialogKey{clientKey: in}).answer(p.Device, x)
	}
}

func (l *Log) dialog(k dialogKey) *dialog {
	d := l.dialogs[k]
	if d == nil {
		d = &dialog{dialogKey: k}
		l.dialogs[k] = d
	}
	return d
}

// elsewhere reports whether requests or replies were first seen in another device.
func (d *dialog) elsewhere(way, device int) bool {
	if d.devices[way] == 0 {
		d.devices[way] = device
	}
	return d.devices[way] != device
}

// note looks for protocols in which both sides send what answers nothing.
func (d *dialog) note(way int, x datagram) {
	d.both = d.both || x.both || x.seal.follows(d.seals[way]) ||
		!x.dns && d.hides.add(byte(x.head>>24))
	d.seals[way] = x.seal
}

func (d *dialog) ask(device int, x datagram) {
	if d.note(0, x); !d.elsewhere(0, device) {
		q := &query{of: d, request: x}
		d.queries, d.waiting = append(d.queries, q), append(d.waiting, q)
	}
}

// answer finds the request that a reply is to: by its number if it is of DNS, and else the oldest
// one that waits.
func (d *dialog) answer(device int, x datagram) {
	if d.note(1, x); d.elsewhere(1, device) {
		return
	}
	d.waiting = slices.DeleteFunc(d.waiting, func(q *query) bool { return q.lost(x.at) })
	i := slices.IndexFunc(d.waiting, func(q *query) bool {
		return x.answers(q.request) || !q.request.dns
	})
	switch {
	case i >= 0:
		d.waiting[i].reply = x
		d.waiting = slices.Delete(d.waiting, i, i+1)
	case len(d.queries) > 0: // else its request is older than the log
		d.strays++
	}
}

// sentKey identifies the datagrams that a socket sent to an address, as far as they are told apart.
type sentKey struct {
	clientKey
	head uint32
	size int
}

// addSent adds a datagram that a socket in a namespace sent.
func (l *Log) addSent(space int, p pair, e writes.Event) {
	k := sentKey{clientKey{space: space, pair: p}, e.Seq, int(e.Len)}
	if k.size < headSize {
		k.head = 0
	}
	l.datagrams[k] = append(l.datagrams[k], e)
}

// sentBy returns when the server gave the reply of a query to a device. Queries come in the order
// of their requests. used has how many of what was sent are replies of earlier ones.
func (l *Log) sentBy(q *query, used map[sentKey]int) (e writes.Event, ok bool) {
	k := sentKey{q.of.clientKey, q.reply.head, q.reply.size}
	list := l.datagrams[k]
	for i := used[k]; i < len(list) && list[i].At <= q.reply.at+slack; i++ {
		if e = list[i]; e.At >= q.request.at-slack {
			used[k] = i + 1
			e.At = min(max(e.At, q.request.at), q.reply.at)
			return e, true
		}
	}
	return e, false
}

// trimSent forgets what was sent long before the last packet, whose reply was not captured.
func (l *Log) trimSent() {
	for k, list := range l.datagrams {
		list = slices.DeleteFunc(list, func(e writes.Event) bool {
			return e.At < l.latest-longestOther
		})
		if l.datagrams[k] = list; len(list) == 0 {
			delete(l.datagrams, k)
		}
	}
}
