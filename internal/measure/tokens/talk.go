package tokens

// talk pairs the requests and replies of a connection by their order.
type talk struct {
	begun         bool
	headed        bool   // what is before the first request has come
	lead          []byte // of that
	asks, answers framer // nil: the protocol is not one that is read
	both          bool   // sides send what answers nothing
	asked, from   int64  // offsets of the last pair that was taken
	left          int64  // when its reply had left
	lost          bool   // a request was not captured
	counted       int    // replies to such requests that were counted and are kept
}

// request reads the next bytes of requests; n more of them were not captured.
func (t *talk) request(b []byte, n int64) {
	if b = t.behindHeader(b); len(b) == 0 && n == 0 {
		return
	}
	if !t.begun {
		t.begun = true
		t.both = areTwoWay(b)
		t.read(framersOf(b))
	}
	feed(t.asks, b, n)
}

// behindHeader returns the bytes behind a header of the PROXY protocol, none before that has ended.
func (t *talk) behindHeader(b []byte) []byte {
	if t.headed {
		return b
	}
	t.lead = append(t.lead, b...)
	size, known := proxyHeader(t.lead)
	if !known {
		return nil
	}
	b, t.lead, t.headed = t.lead[size:], nil, true
	t.asked = int64(size)
	if t.asks != nil { // the server talked first
		t.read(t.asks, t.answers)
	}
	return b
}

// read sets the framers. Requests begin behind what was before the first one.
func (t *talk) read(asks, answers framer) {
	t.asks, t.answers = asks, answers
	switch a := asks.(type) {
	case nil:
	case *http:
		a.offset, a.start = t.asked, t.asked
	default:
		a.found().at = t.asked
	}
}

func (t *talk) reply(b []byte, n int64) {
	switch {
	case t.begun:
	case greetsHTTP2(b):
		t.read(framersOf([]byte(http2Preface)))
	case greetsMySQL(b):
		t.read(newMySQL(true))
	default: // another server that talks first speaks another protocol
		t.both = areTwoWay(b)
	}
	t.begun = true
	if feed(t.answers, b, n); t.reads() && !t.interleaves() {
		t.compare()
	}
}

// compare handles a reply that nobody was seen to ask for.
func (t *talk) compare() {
	asks, answers := t.asks.found(), t.answers.found()
	if len(answers.frames) <= len(asks.frames) {
		return
	}
	if r, ok := t.asks.(*resp); ok && (r.tells || answers.frames[len(asks.frames)].news) {
		answers.failed, answers.twoWay = true, true
		return
	}
	t.lost, asks.failed = true, true
}

// unasked returns how many replies to requests that were not captured came since the last call.
// The last one is kept, because more of it may come.
func (t *talk) unasked() int {
	f, asked := t.answers.found(), len(t.asks.found().frames)
	n := len(f.frames) - asked - t.counted
	if n > 0 {
		f.frames, t.counted = append(f.frames[:asked], f.frames[len(f.frames)-1]), 1
	}
	return max(0, n)
}

func feed(f framer, b []byte, n int64) {
	if f == nil || f.found().failed {
		return
	}
	if f.feed(b); n > 0 && !f.found().failed {
		f.skip(n)
	}
}

// reads reports whether the requests are told apart.
func (t *talk) reads() bool {
	return t.asks != nil && !t.asks.found().failed && !t.answers.found().failed
}

// twoWay reports whether both sides send what answers nothing, so that there are no requests.
func (t *talk) twoWay() bool {
	return t.both || t.asks != nil && (t.asks.found().twoWay || t.answers.found().twoWay)
}

// interleaves reports whether requests need not be answered in their order.
func (t *talk) interleaves() bool {
	_, yes := t.asks.(*http2)
	return yes
}

// exchange is a request with its reply.
type exchange struct {
	turn
	frame
	behind bool // it came before the reply to the one before had left
}

// pairs returns the requests whose first byte was seen, those without a reply last.
func (c *connection) pairs() (out []exchange) {
	t := &c.talk
	if t.interleaves() {
		return c.streams(t.asks.(*http2), t.answers.(*http2))
	}
	asked, from, left := t.asked, t.from, t.left
	answers := t.answers.found().frames
	for i, f := range t.asks.found().frames {
		start := max(asked, f.start)
		first, ok := c.in.at(start + 1)
		if !ok {
			break
		}
		x := exchange{turn{sent: first.at, before: start, asked: f.end, from: from}, f, first.at < left}
		if i < len(answers) {
			x.from, x.to, x.open = max(from, answers[i].start), answers[i].end, answers[i].open
			if m, ok := c.out.at(x.to); ok {
				left = m.at
			}
			from = x.to
		}
		asked = f.end
		out = append(out, x)
	}
	return out
}

// takePairs takes what Take does, of a connection whose requests are told apart, or were until now.
func (r *Requests) takePairs(l *Log, c *connection, k key, before int64) {
	t := &c.talk
	if t.interleaves() {
		r.takeStreams(l, c, k, before)
		return
	}
	n := 0
	for _, x := range c.pairs() {
		if before != 0 && x.sent >= before {
			break
		}
		switch {
		case x.to == 0 && before != 0 && !x.login && t.reads():
			r.unanswered++
			continue
		case x.to == 0, x.open && before == 0 && !c.over && t.reads():
			continue
		}
		n++
		if !x.login {
			r.connections[k] = true
			if !r.add(l, c, x.turn) { // the reply came first: it is another one's
				t.asks.found().failed = true
			}
			r.note(x)
		}
		t.asked, t.from = x.asked, x.to
		if m, ok := c.out.at(x.to); ok {
			t.left = m.at
		}
	}
	for _, f := range []framer{t.asks, t.answers} {
		f.found().frames = f.found().frames[n:]
	}
	if n > 0 {
		c.drop(t.asked, t.from)
	}
	c.turns = c.turns[:0]
}

// takeLast takes what takePairs does, of a connection whose requests are not told apart any more.
func (r *Requests) takeLast(l *Log, c *connection, k key, before int64) {
	t := &c.talk
	if t.asks != nil && !t.interleaves() {
		r.takePairs(l, c, k, before)
	}
	switch {
	case t.twoWay():
		r.twoWay[k] = true
	case t.lost:
		r.unmatched += t.unasked()
	}
	c.turns = c.turns[:0]
	c.drop(c.in.end, c.out.end)
}

func (r *Requests) note(x exchange) {
	if x.behind {
		r.pipelined++
	}
	if x.several {
		r.together++
	}
}
