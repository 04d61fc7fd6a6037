package tokens

import (
	"cmp"
	"slices"
	"sort"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Replies tells how the requests of a client over UDP were answered.
type Replies struct {
	Unanswered int
	TwoWay     int            // connections on which both sides send what answers nothing
	Errors     map[string]int // replies of DNS with an error, by its name
}

// AskedUDP is Asked for requests over UDP, which went to one of the addresses. None is left out. It
// returns how they were answered, too.
func (l *Log) AskedUDP(by Client, slots int) (out []Exchange, r Replies) {
	r.Errors = map[string]int{}
	for _, q := range l.queriesIn(func(k dialogKey) bool {
		return !k.served() && by.has(k.clientKey)
	}) {
		if q.reply.at == 0 {
			r.Unanswered++
			continue
		}
		if code := q.reply.code(); code != "" {
			r.Errors[code]++
		}
		out = append(out, Exchange{Local: q.of.local.Port(), Sent: q.request.at, Read: q.reply.at})
	}
	for k, d := range l.dialogs {
		if d.both && !k.served() && by.has(k.clientKey) {
			r.TwoWay++
		}
	}
	Slot(out, slots)
	return out, r
}

// queriesIn returns the queries of some dialogs by the time of their requests.
func (l *Log) queriesIn(of func(dialogKey) bool) (out []*query) {
	for k, d := range l.dialogs {
		if !d.both && of(k) {
			out = append(out, d.queries...)
		}
	}
	slices.SortFunc(out, func(a, b *query) int {
		return cmp.Or(cmp.Compare(a.request.at, b.request.at), a.of.local.Compare(b.of.local),
			a.of.remote.Compare(b.of.remote))
	})
	return out
}

// FollowUDP is Follow for exchanges over UDP. Their datagrams are recognized at each hop by their
// bytes. foreign means that nothing is known of the client but what its device saw, as AskedUDP
// returns it.
func (l *Log) FollowUDP(client int, chain []Hop, all []Exchange, foreign bool) *sample.Trace {
	out := l.newFollowed()
	out.stretches = stretches(chain, true, len(l.datagrams) > 0)
	l.passings.sort()
	f := &queries{Log: l, writes: len(l.datagrams) > 0, used: map[sentKey]int{}}
	for _, h := range chain {
		f.at = append(f.at, bySum(l.queriesIn(func(k dialogKey) bool {
			return k.serves == h.Place
		})))
		f.from = append(f.from, bySum(l.queriesIn(func(k dialogKey) bool {
			return !k.served() && slices.Contains(h.From, Place{Space: k.space, Port: k.remote.Port()})
		})))
	}
	own := map[uint16][]*query{}
	for _, q := range l.queriesIn(func(k dialogKey) bool { return !k.served() && k.space == client }) {
		own[q.of.local.Port()] = append(own[q.of.local.Port()], q)
	}
	for _, x := range all {
		f.follow(out, x, own[x.Local])
	}
	out.divideNetwork()
	if last := len(out.stretches) - 1; foreign {
		out.stretches = out.stretches[1:last]
		for i, r := range out.rows {
			out.rows[i] = r[1:last]
		}
	}
	return out.trace(len(all))
}

// sums has queries by the sums of their requests, in the order of time.
type sums map[uint64][]*query

func bySum(all []*query) sums {
	out := sums{}
	for _, q := range all {
		q.taken = false
		out[q.request.sum] = append(out[q.request.sum], q)
	}
	return out
}

// take returns the first query from a time to another one that has the same request as the one that
// was sent, and that no exchange has, or nil. If several sockets sent such requests, it must be
// from the same port.
func (s sums) take(sent *query, from, to int64) (found *query) {
	list, several := s[sent.request.sum], false
	first := sort.Search(len(list), func(i int) bool { return list[i].request.at >= from-slack })
	for _, q := range list[first:] {
		if q.request.at > to+slack {
			break
		}
		if q.taken || q.of == sent.of {
			continue
		}
		if q.of.served() && q.of.remote.Port() == sent.of.local.Port() {
			found, several = q, false
			break
		}
		if found == nil {
			found = q
		}
		several = several || found.of != q.of
	}
	if found == nil || several {
		return nil
	}
	found.taken = true
	return found
}

// queries finds exchanges at the hops of a chain.
type queries struct {
	*Log
	writes   bool
	at, from []sums // at each hop, and where a relay dials it
	used     map[sentKey]int
}

// follow divides an exchange, which is one of its client's own queries.
func (f *queries) follow(out *followed, x Exchange, own []*query) {
	i := sort.Search(len(own), func(i int) bool { return own[i].request.at >= x.Sent })
	if i == len(own) || own[i].request.at > x.Read {
		out.lose("request sent", out.stretches[0].name, 1)
		return
	}
	at, replied, missing := f.instants(own[i], x)
	out.add(at, nil, func(n int, from, to int64) []pass {
		if n < len(f.at) {
			return f.passings.ofSum(own[i].request.sum, from, to)
		}
		return f.passings.ofSum(replied, from, to)
	}, missing, x.Slot)
}

// instants returns the instants of an exchange, and the sum of the reply. missing means that what
// follows them was not seen.
func (f *queries) instants(q *query, x Exchange) (at []int64, replied uint64, missing bool) {
	at = []int64{x.Sent, q.request.at}
	end := x.Read
	if q.reply.at != 0 {
		end = q.reply.at
	}
	var served, dialled []*query // from the client's side
	last, sent := q, q
	for i := len(f.at) - 1; i >= 0; i-- {
		if last = f.at[i].take(sent, at[len(at)-1], end); last == nil {
			return at, 0, true
		}
		served, at = append(served, last), append(at, last.request.at)
		if i == 0 {
			break
		}
		if sent = f.from[i-1].take(sent, at[len(at)-1], end); sent == nil {
			return at, 0, true
		}
		dialled, at = append(dialled, sent), append(at, sent.request.at)
	}
	answered := func(replied *query) bool {
		if replied.reply.at == 0 || replied.reply.sum != last.reply.sum {
			return false
		}
		at = append(at, replied.reply.at)
		return true
	}
	if f.writes {
		e, ok := f.sentBy(last, f.used)
		if !ok {
			return at, 0, true
		}
		at = append(at, e.At)
	}
	if !answered(last) {
		return at, 0, true
	}
	for i := len(dialled) - 1; i >= 0; i-- {
		if !answered(dialled[i]) || !answered(served[i]) {
			return at, 0, true
		}
	}
	if !answered(q) {
		return at, 0, true
	}
	for i := range at { // what seems to be after the reading, within slack, was at it
		if at[i] > x.Read && at[i] <= x.Read+slack {
			at[i] = x.Read
		}
	}
	return append(at, x.Read), last.reply.sum, false
}
