package tokens

// takeDatagrams takes what Take does, of requests and replies over UDP.
func (r *Requests) takeDatagrams(l *Log, at Place, before int64) {
	used := map[sentKey]int{}
	for k, d := range l.dialogs {
		if k.serves != at {
			continue
		}
		of := key{Place: at, pair: k.pair}
		if d.both || r.twoWay[of] {
			r.twoWay[of] = true
			delete(l.dialogs, k)
			continue
		}
		var left []*query
		for _, q := range d.queries {
			switch {
			case before != 0 && q.request.at >= before:
			case q.reply.at != 0:
				r.connections[of] = true
				r.addQuery(l, q, used, len(left) == 0)
			case before != 0 || q.lost(l.latest):
				d.had = 0
				r.unanswered++
			default:
				left = append(left, q)
			}
		}
		r.unmatched, d.strays = r.unmatched+d.strays, 0
		if d.queries = left; len(left) == 0 && d.had < l.latest-longestDNS {
			delete(l.dialogs, k)
		}
	}
	l.trimSent()
	l.askers.trim(l.latest - longestDNS)
}

// addQuery adds a query. alone means that all queries before it in its dialog had their replies.
func (r *Requests) addQuery(l *Log, q *query, used map[sentKey]int, alone bool) {
	one := served{at: q.request.at}
	one.parts[inServer] = q.reply.at - q.request.at
	if e, ok := l.sentBy(q, used); ok {
		one.written = true
		one.parts[inServer], one.parts[inQueue] = e.At-q.request.at, q.reply.at-e.At
		one.wait(l.spentBy(e, q.request.at, e.At))
	}
	if one.had = l.had(q); alone && q.of.had != 0 {
		one.had.between = max(0, one.had.wrote-q.of.had)
	}
	if q.of.had = max(q.of.had, one.had.read); one.had.read == 0 {
		q.of.had = 0
	}
	if code := q.reply.code(); code != "" {
		r.codes[code]++
	}
	if !q.request.dns {
		r.unread++
	}
	r.all, r.sum = append(r.all, one), r.sum+one.whole()
}
