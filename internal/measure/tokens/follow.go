package tokens

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Hop is a server or relay on the way of exchanges.
type Hop struct {
	Place
	Name string
	// From are the places from which the relay behind it dials it, by the ports that they dial.
	From []Place
}

// Exchange is a request and its reply as a client had them, on a connection on which they take
// turns. Times are CLOCK_REALTIME, ns.
type Exchange struct {
	Slot       int // ascending, like Sent
	Local      uint16
	Sent, Read int64 // before the first write, and after the last read
}

// instant ends a stretch of an exchange's time.
type instant struct {
	sample.SegmentKey
	name string // of the instant
	// records is the number of records on the way to the instant, which take time there; 0: it is that
	// of a run.
	records int
}

// followed are exchanges, each with the time of its stretches in ns.
type followed struct {
	stretches []instant
	rows      []Row
	splits    [][]split  // of each row's stretches in a process, in their order
	ways      [][][]pass // the same of those on the network; nil: the devices there are not known
	slept     []sample.Sleeper
	slots     []int
	stamped   int // stretches on which a device's time was noted for those behind it, too
	between   Between
	kept      int64                // all packets before this time are
	unkept    int                  // exchanges of which not all packets are kept
	captured  map[int][]int        // packets of the others on each stretch on the network, but for its first
	lost      map[sample.Break]int // by its After and Want
	waits     *Sums
}

// Follow divides exchanges of clients in a namespace over a chain of hops, from the server on, whose
// relays copy bytes. If no write of the server was seen, its TCP and its queue are in its part.
func (l *Log) Follow(client int, chain []Hop, all []Exchange) *sample.Trace {
	f := l.follow(client, chain, all)
	return f.trace(len(all))
}

// Asked returns the exchanges of the clients in a namespace that dialled an address, as their device
// saw them: from the first byte that was sent to the last one that came. The first tenth of
// a connection's, which may log in, is left out. They have at most the given number of slots.
func (l *Log) Asked(by Client, slots int) (out []Exchange) {
	for k, q := range l.asks {
		a := l.came[k]
		if a == nil || !by.has(k) {
			continue // a relay may dial its server in the client's namespace
		}
		turns := q.complete(a.top)
		for _, x := range turns[len(turns)/10:] {
			if read, ok := a.at(x.to); ok {
				out = append(out, Exchange{Local: k.local.Port(), Sent: x.sent, Read: read})
			}
		}
	}
	slices.SortFunc(out, func(a, b Exchange) int { return cmp.Compare(a.Sent, b.Sent) })
	Slot(out, slots)
	return out
}

// Streams reports whether a client speaks h2c, of which Asked returns no exchanges.
func (l *Log) Streams(by Client) bool {
	for k, q := range l.asks {
		if q.streams && by.has(k) {
			return true
		}
	}
	return false
}

// Slot divides exchanges evenly among at most n slots.
func Slot(all []Exchange, n int) {
	for i := range all {
		all[i].Slot = i * min(n, len(all)) / len(all)
	}
}

// FollowAsked is Follow for exchanges that Asked returned, of whose client nothing else is known.
func (l *Log) FollowAsked(client int, chain []Hop, all []Exchange) *sample.Trace {
	f := l.follow(client, chain, all)
	last := len(f.stretches) - 1
	f.stretches = f.stretches[1:last]
	for i, r := range f.rows {
		f.rows[i] = r[1:last]
	}
	return f.trace(len(all))
}

func (l *Log) follow(client int, chain []Hop, all []Exchange) *followed {
	places := make([]Place, len(chain))
	for i, h := range chain {
		places[i] = h.Place
	}
	writes := false
	byLocal := map[uint16][]Exchange{}
	for _, x := range all {
		byLocal[x.Local] = append(byLocal[x.Local], x)
	}
	var ways []way
	out := l.newFollowed()
	tracks := l.tracks(func(k clientKey) bool {
		return k.space == client && len(byLocal[k.local.Port()]) > 0
	})
	l.join(tracks, places)
	// A relay in the client's namespace may dial from a port of the same number.
	slices.SortStableFunc(tracks, func(a, b *track) int {
		return cmp.Compare(len(b.conns), len(a.conns))
	})
	for _, t := range tracks {
		mine := byLocal[t.local.Port()]
		n := len(mine)
		if t.q.until != 0 { // the others are of the next connection from this port
			n = sort.Search(n, func(i int) bool { return mine[i].Sent >= t.q.until })
		}
		mine, byLocal[t.local.Port()] = mine[:n], mine[n:]
		switch {
		case len(mine) == 0:
		case t.conns == nil:
			out.lose("request sent", "its connection at every hop", len(mine))
		default:
			writes = writes || len(t.conns[0].written.writes) > 0
			ways = append(ways, way{l, t.q, t.came, t.conns, l.dialled(chain, t.conns), mine, t.turns})
		}
	}
	for _, mine := range byLocal {
		if len(mine) > 0 {
			out.lose("request sent", "its packets", len(mine))
		}
	}
	out.stretches = stretches(chain, false, writes)
	for _, w := range ways {
		w.divide(out, writes)
	}
	out.divideNetwork()
	out.slept = out.sleepers()
	out.split()
	return out
}

func (l *Log) newFollowed() *followed {
	return &followed{lost: map[sample.Break]int{}, waits: NewSums(0), between: l.Between,
		kept: l.passings.kept(), captured: map[int][]int{}}
}

func (f *followed) lose(after, want string, n int) {
	f.lost[sample.Break{After: after, Want: want}] += n
}

// way is a client's connection with those behind it, from the server on.
type way struct {
	log   *Log
	q     *asks
	came  *arrivals
	conns []*connection
	dials []dialled // how each of conns but the client's was dialled
	mine  []Exchange
	turns []turn
}

// dialled is a connection as its relay saw it.
type dialled struct {
	out     *stream
	came    *arrivals
	written writings
}

// dialled finds how relays dialled connections. The last one is the client's.
func (l *Log) dialled(chain []Hop, conns []*connection) []dialled {
	out := make([]dialled, len(conns)-1)
	for k, q := range l.asks {
		for i := range out {
			if q.out.base == conns[i].in.base && l.came[k] != nil &&
				slices.ContainsFunc(chain[i].From, func(p Place) bool {
					return p.Space == k.space && p.Port == k.remote.Port()
				}) {
				l.noteDialWrites(k)
				out[i] = dialled{out: &q.out, came: l.came[k], written: q.written}
			}
		}
	}
	return out
}

// noteDialWrites adds the writes to the sockets that dialled from a port to their connections.
func (l *Log) noteDialWrites(k clientKey) {
	k.nth = 0
	all := l.dialWrites.take(k.space, k.pair, func(p pair) bool {
		return l.asks[clientKey{space: k.space, pair: p}] != nil
	})
	for q := l.asks[k]; q != nil; q = q.before {
		q.written.add(&q.out, all...)
	}
}

// stretches returns the stretches between an exchange's instants, in their order. Over UDP there is
// no transfer, and no TCP at the server.
func stretches(chain []Hop, udp, writes bool) (out []instant) {
	add := func(reply bool, part sample.Part, hop, where, name string) {
		out = append(out, instant{SegmentKey: sample.SegmentKey{Reply: reply, Hop: hop, Where: where,
			Part: part}, name: name, records: 1})
	}
	// relayed adds a relay's stretch. Its run and its write are recorded on the way, and when its reply
	// leaves TCP.
	relayed := func(reply bool, h Hop, name string) {
		add(reply, sample.PartRelayed, h.Name, "", name+" leaving "+h.Name)
		last := &out[len(out)-1]
		if writes && !udp {
			last.records += 2
		}
		if writes && reply {
			last.records++
		}
	}
	const network = string(sample.PartNetwork)
	server := chain[0].Name
	add(false, sample.PartClient, "", "", "request at the client's device")
	if !udp {
		add(false, sample.PartTransfer, "", "", "end of the request there")
	}
	for _, h := range slices.Backward(chain[1:]) {
		add(false, sample.PartNetwork, network, "to "+h.Name, "request at "+h.Name)
		relayed(false, h, "request")
	}
	add(false, sample.PartNetwork, network, "to "+server, "request at "+server)
	switch {
	case udp && writes:
		add(false, sample.PartServer, server, "", "reply of "+server)
		add(true, sample.PartServerQueue, server, "", "reply leaving "+server)
	case udp:
		add(false, sample.PartServer+" + "+sample.PartServerQueue, server, "", "reply leaving "+server)
	case writes:
		add(false, sample.PartServer, server, "", "write of "+server)
		add(true, sample.PartServerTCP, server, "", "reply leaving its TCP")
		add(true, sample.PartServerQueue, server, "", "reply leaving "+server)
	default:
		add(false, sample.PartServer+" + "+sample.PartServerTCP+" + "+sample.PartServerQueue, server,
			"", "reply leaving "+server)
	}
	for _, h := range chain[1:] {
		add(true, sample.PartNetwork, network, "to "+h.Name, "reply at "+h.Name)
		relayed(true, h, "reply")
	}
	add(true, sample.PartNetwork, network, "to the client", "reply at the client's device")
	if !udp {
		add(true, sample.PartTransfer, network, "", "end of the reply there")
	}
	add(true, sample.PartClient, "", "", "reply read")
	return out
}

// divide divides the exchanges of a connection.
func (w *way) divide(out *followed, writes bool) {
	for _, x := range w.mine {
		i := sort.Search(len(w.turns), func(i int) bool { return w.turns[i].sent >= x.Sent })
		if i == len(w.turns) || w.turns[i].sent > x.Read {
			out.lose("request sent", out.stretches[0].name, 1)
			continue
		}
		if i+1 < len(w.turns) && w.turns[i+1].sent < x.Read {
			out.lose("reply at the client's device", "reply read", 1) // several replies
			continue
		}
		at, splits, missing := w.instants(x, w.turns[i], writes, out.waits)
		out.add(at, splits, w.crossing(w.turns[i]), missing, x.Slot)
	}
}

// crossing returns where an exchange passed: first the request, from the client on, and then the
// reply.
func (w *way) crossing(t turn) crossing {
	last := len(w.conns) - 1
	return func(n int, from, to int64) []pass {
		if n <= last {
			return w.log.passings.of(w.conns[last-n].in.base, t.asked, from, to)
		}
		return w.log.passings.of(w.conns[n-last-1].out.base, t.from+1, from, to)
	}
}

// add adds an exchange with its instants, how processes spent the stretches between these, and
// where it passed, unless what follows the instants is missing or they are not in order.
func (f *followed) add(at []int64, splits []split, of crossing, missing bool, slot int) {
	if missing {
		after := "request sent"
		if n := len(at) - 1; n > 0 {
			after = f.stretches[n-1].name
		}
		f.lose(after, f.stretches[len(at)-1].name, 1)
		return
	}
	if k := inOrder(at); k > 0 {
		f.lose(f.stretches[max(0, k-2)].name, "a later "+f.stretches[k-1].name, 1)
		return
	}
	row := make(Row, len(at)-1)
	for k := range row {
		row[k] = at[k+1] - at[k]
	}
	f.rows, f.slots = append(f.rows, row), append(f.slots, slot)
	f.splits = append(f.splits, splits)
	if f.between != nil {
		f.ways = append(f.ways, f.cross(at, of))
	}
}

// inOrder moves instants that seem to be earlier than those before them, by at most slack. It
// returns the index of one that is earlier than that, or 0.
func inOrder(at []int64) int {
	for k := 1; k < len(at); k++ {
		if at[k] < at[k-1]-slack {
			return k
		}
		at[k] = max(at[k], at[k-1])
	}
	return 0
}

// instants returns the instants of an exchange, from the client's write on, and how each process spent
// its time. missing means that what follows them was not seen. It adds what the reply waited for to
// waits.
func (w *way) instants(x Exchange, t turn, writes bool, waits *Sums) (at []int64, splits []split,
	missing bool) {
	at = []int64{x.Sent, t.sent}
	first := t.from + 1
	left := func(s *stream, offset int64) bool {
		m, ok := s.at(offset)
		if ok {
			at = append(at, m.at)
		}
		return ok
	}
	came := func(a *arrivals, offset int64) bool {
		ns, ok := a.at(offset)
		if ok {
			at = append(at, ns)
		}
		return ok
	}
	// spent notes how the process that wrote the byte before an offset spent the last stretch.
	spent := func(list []writing, offset int64) {
		splits = append(splits, w.log.spent(list, offset, at[len(at)-2], at[len(at)-1]))
	}
	if !left(&w.q.out, t.asked) {
		return at, splits, true
	}
	for i := len(w.conns) - 1; i > 0; i-- {
		d := w.dials[i-1]
		if !left(&w.conns[i].in, t.asked) || d.out == nil || !left(d.out, t.asked) {
			return at, splits, true
		}
		spent(d.written.writes, t.asked)
	}
	if !left(&w.conns[0].in, t.asked) {
		return at, splits, true
	}
	s, ok := w.conns[0].seen(&request{end: t.asked}, &reply{events: []Event{{Offset: first},
		{Offset: t.to}}})
	waits.AddWaits(&s)
	switch {
	case !ok, writes && s.Wrote == nil:
		return at, splits, true
	case writes:
		wrote := max(s.Wrote[0], s.Came)
		at = append(at, wrote)
		spent(w.conns[0].written.writes, first)
		at = append(at, max(wrote, s.Sent[0]))
	}
	at = append(at, s.Departed[0])
	for i := 1; i < len(w.conns); i++ {
		if !came(w.dials[i-1].came, first) || !left(&w.conns[i].out, first) {
			return at, splits, true
		}
		spent(w.conns[i].written.writes, first)
	}
	if !came(w.came, first) || !came(w.came, t.to) {
		return at, splits, true
	}
	for i := range at { // what seems to be after the reading, within slack, was at it
		if at[i] > x.Read && at[i] <= x.Read+slack {
			at[i] = x.Read
		}
	}
	return append(at, x.Read), splits, false
}

// trace returns the figures of exchanges, of which there were n.
func (f *followed) trace(n int) *sample.Trace {
	out := &sample.Trace{Trips: n, Followed: len(f.rows), Slots: []int{}, Waits: f.waits.causes(),
		Stamped: 2*f.stamped > len(f.rows), Unkept: f.unkept, Sleepers: f.slept}
	for b, count := range f.lost {
		b.Share = float64(count) / float64(n)
		out.Broken = append(out.Broken, b)
	}
	slices.SortFunc(out.Broken, func(a, b sample.Break) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), strings.Compare(a.After+a.Want, b.After+b.Want))
	})
	if len(f.rows) == 0 {
		return out
	}
	f.sort()
	for _, x := range f.stretches[1:] {
		out.Events += float64(x.records)
	}
	middle := middleOf(f.rows)
	for _, r := range middle {
		out.MidMean += seconds(r.total()) / float64(len(middle))
	}
	var middles [][]Row
	for i := 0; i < len(f.slots); {
		end := i + 1
		for end < len(f.slots) && f.slots[end] == f.slots[i] {
			end++
		}
		slot := f.rows[i:end]
		out.Slots = append(out.Slots, f.slots[i])
		out.Totals = append(out.Totals, seconds(totals(slot)[(end-i)/2]))
		middles = append(middles, middleOf(slot))
		i = end
	}
	slowest := slices.MaxFunc(f.rows, func(a, b Row) int { return cmp.Compare(a.total(), b.total()) })
	tail := tailOf(f.rows)
	from := "request sent"
	for i, x := range f.stretches {
		g := sample.Segment{SegmentKey: x.SegmentKey, Share: 1, Events: float64(x.records),
			Slowest: seconds(slowest[i]), Steps: [2]string{steps(from), steps(x.name)}, MidMean: mean(middle, i)}
		from = x.name
		for _, rows := range middles {
			g.MidMeans = append(g.MidMeans, mean(rows, i))
		}
		each := make([]int64, len(f.rows))
		for k, r := range f.rows {
			each[k] = r[i]
		}
		slices.Sort(each)
		g.P99 = seconds(p99(each))
		if len(tail) > 0 {
			g.Tail = mean(tail, i)
		}
		out.Segments = append(out.Segments, g)
	}
	return out
}

// steps makes one word of an instant's name.
func steps(name string) string { return strings.ReplaceAll(name, " ", "_") }

// sort puts the exchanges in the order of their slots.
func (f *followed) sort() {
	order := make([]int, len(f.rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(f.slots[a], f.slots[b]) })
	rows, slots := make([]Row, len(order)), make([]int, len(order))
	for i, at := range order {
		rows[i], slots[i] = f.rows[at], f.slots[at]
	}
	f.rows, f.slots = rows, slots
}

func totals(rows []Row) []int64 {
	out := make([]int64, len(rows))
	for i, r := range rows {
		out[i] = r.total()
	}
	slices.Sort(out)
	return out
}

// middleOf returns the rows whose totals are between the 40th and the 60th percentile.
func middleOf(rows []Row) (out []Row) {
	all := totals(rows)
	n := len(all) - 1
	a, b := all[(n*4+9)/10], all[n*6/10]
	for _, r := range rows {
		if t := r.total(); t >= min(a, b) && t <= max(a, b) {
			out = append(out, r)
		}
	}
	return out
}

// p99 returns the least of some values, which are sorted, that at least 99 % of them do not exceed.
func p99(sorted []int64) int64 {
	const p, whole = 99, 100
	return sorted[(len(sorted)*p+whole-1)/whole-1]
}

// tailOf returns the rows whose totals are from the 98.5th to the 99.5th percentile.
func tailOf(rows []Row) []Row {
	const thousand = 1000
	all := slices.SortedStableFunc(slices.Values(rows), func(a, b Row) int {
		return cmp.Compare(a.total(), b.total())
	})
	return all[len(all)*985/thousand : len(all)*995/thousand]
}

func mean(rows []Row, i int) (sum float64) {
	for _, r := range rows {
		sum += seconds(r[i]) / float64(len(rows))
	}
	return sum
}
