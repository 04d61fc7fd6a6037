package tokens

import (
	"math"
	"strings"
	"testing"
)

// kinds returns messages of PostgreSQL's protocol without data, by their kinds.
func kinds(of string) (out string) {
	for _, kind := range []byte(of) {
		body := ""
		switch kind {
		case 'Q':
			body = "select 1\x00"
		case 'd':
			body = strings.Repeat("1\t2\n", 100)
		case 'Z':
			body = "I"
		}
		out += message(kind, body)
	}
	return out
}

// said is what one side sends, 10 µs after the other or, if it is late, a second.
type said struct {
	kinds string
	out   bool
	late  bool
}

// TestServedPostgres has requests of PostgreSQL's protocol in which the client sends more than requests,
// and after each of them a pause and four queries.
func TestServedPostgres(t *testing.T) {
	for name, tt := range map[string]struct {
		said []said
		want int // requests before the queries
		took float64
	}{
		"a COPY": {[]said{{kinds: "Q"}, {"G", true, false}, {kinds: "ddd"}, {kinds: "dc"},
			{"CZ", true, false}}, 1, 40e-6},
		"a COPY that takes long": {[]said{{kinds: "Q"}, {"G", true, false}, {"d", false, true},
			{"c", false, true}, {"CZ", true, false}}, 1, 2.00002},
		"a COPY that fails": {[]said{{kinds: "Q"}, {"G", true, false}, {kinds: "df"},
			{"EZ", true, false}}, 1, 30e-6},
		"a COPY that fails at once": {[]said{{kinds: "Q"}, {"EZ", true, false}, {kinds: "df"}}, 1, 10e-6},
		"two COPYs of a query": {[]said{{kinds: "Q"}, {"G", true, false}, {kinds: "dc"},
			{"CG", true, false}, {kinds: "dc"}, {"CZ", true, false}}, 1, 50e-6},
		"a COPY by the extended protocol": {[]said{{kinds: "PBDES"}, {"12nG", true, false},
			{kinds: "dd"}, {kinds: "d"}, {kinds: "cS"}, {"CZ", true, false}}, 1, 50e-6},
		"one without data": {[]said{{kinds: "PBDES"}, {"12nG", true, false}, {kinds: "cS"},
			{"CZ", true, false}}, 1, 30e-6},
		"one that fails": {[]said{{kinds: "PBDES"}, {"12nG", true, false}, {kinds: "d"},
			{"E", true, false}, {kinds: "dfS"}, {"Z", true, false}}, 1, 50e-6},
		"one that does not wait": {[]said{{kinds: "BESdcS"}, {"2GCZ", true, false}}, 1, 10e-6},
		"one that does not wait, and another": {[]said{{kinds: "BESdcSBES"},
			{"2GCZ", true, false}, {"2DCZ", true, false}}, 2, 20e-6},
		"one that fails at once": {[]said{{kinds: "BES"}, {kinds: "dcS"}, {"EZ", true, false},
			{"Z", true, false}}, 2, 20e-6},
		"COPYs and Syncs": {[]said{{kinds: "BES"}, {"2G", true, false}, {kinds: "dcS"},
			{"CZ", true, false}, {kinds: "S"}, {"Z", true, false}, {kinds: "Q"}, {"G", true, false},
			{kinds: "dc"}, {"CZ", true, false}, {kinds: "S"}, {"Z", true, false}}, 4, 30e-6},
	} {
		c := conversing()
		c.send(false, kinds("Q"))
		c.send(true, kinds("TDCZ"))
		for _, s := range tt.said {
			if s.late {
				c.at += 1_000_000*us - 10*us
			}
			c.send(s.out, kinds(s.kinds))
		}
		for range 4 {
			c.at += 1_000_000 * us
			c.send(false, kinds("Q"))
			c.send(true, kinds("TDCZ"))
		}
		got := c.served()
		if got.Requests != 5+tt.want || got.Unread+got.Unmatched+got.Unanswered > 0 {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		if x := got.Slowest[0].Whole; math.Abs(x-tt.took) > 1e-9 {
			t.Errorf("%s: took %g s, want %g", name, x, tt.took)
		}
		if x := got.Slowest[tt.want].Whole; math.Abs(x-10e-6) > 1e-9 {
			t.Errorf("%s: a query took %g s", name, x)
		}
	}
}

// TestServedPostgresUnasked has a server that notifies an idle client, and one that is about to ask.
func TestServedPostgresUnasked(t *testing.T) {
	c := conversing()
	for _, unasked := range []string{"", "A", "SN", ""} {
		c.send(false, kinds("Q"))
		c.send(true, kinds("TDCZ"))
		c.at += 1_000_000 * us
		if unasked != "" {
			c.send(true, kinds(unasked))
			c.at += 1_000_000 * us
		}
	}
	got := c.served()
	if got.Requests != 4 || got.Unread+got.Unmatched+got.Unanswered > 0 ||
		math.Abs(got.Whole.Max-10e-6) > 1e-9 {
		t.Errorf("%+v", got)
	}
}

// TestServedPostgresOlder has connections on which a COPY was under way before the log.
func TestServedPostgresOlder(t *testing.T) {
	for name, end := range map[string]string{"simple": "dc", "extended": "dcS", "fails": "f"} {
		c := conversing()
		c.send(false, kinds("dd"))
		c.send(false, kinds(end))
		c.send(true, kinds("CZ"))
		for range 4 {
			c.at += 1_000_000 * us
			c.send(false, kinds("BES"))
			c.send(true, kinds("2DCZ"))
		}
		got := c.served()
		if got.Requests != 4 || got.Unread+got.Unmatched+got.Unanswered > 0 ||
			math.Abs(got.Whole.Max-10e-6) > 1e-9 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestServedPostgresLogin has a client with a password, and a pause behind its login.
func TestServedPostgresLogin(t *testing.T) {
	c := conversing()
	c.open()
	c.send(false, "\x00\x00\x00\x09\x00\x03\x00\x00\x00")
	for range 2 {
		c.send(true, kinds("R"))
		c.send(false, kinds("p"))
	}
	c.send(true, kinds("RRSKZ"))
	c.at += 1_000_000 * us
	c.send(false, kinds("Q"))
	c.send(true, kinds("TDCZ"))
	got := c.served()
	if got.Requests != 1 || got.Unread+got.Unmatched+got.Unanswered+got.Pipelined > 0 ||
		math.Abs(got.Whole.Max-10e-6) > 1e-9 {
		t.Errorf("%+v", got)
	}
}
