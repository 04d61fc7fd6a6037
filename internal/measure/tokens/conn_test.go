package tokens

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
)

// A server drops a SYN while its queues are full, or answers it twice with different numbers.
func TestOpenedTwice(t *testing.T) {
	const ms = int64(1_000_000)
	c := benchClient(0)
	l := NewLog(mine)
	l.Serve(benchPlace, nil)
	add := func(at int64, out bool, seq uint32, flags uint8, payload string) {
		p := &capture.Packet{At: at * ms, Out: out, Src: c, Dst: benchServer, Seq: seq, Flags: flags,
			TSVal: uint32(at), Payload: []byte(payload), Size: len(payload)}
		if out {
			p.Src, p.Dst = p.Dst, p.Src
		}
		l.Add(0, p)
	}
	add(1000, false, 7, capture.SYN, "")
	add(2000, false, 7, capture.SYN, "")
	add(2000, true, 100, capture.SYN|capture.ACK, "")
	add(4000, false, 7, capture.SYN, "")
	add(4000, true, 900, capture.SYN|capture.ACK, "")
	add(4001, false, 8, capture.ACK, benchRequest)
	add(4010, true, 901, capture.ACK, chunks+chunk(says("one"))+ended)
	seen := l.Take(benchPlace)
	if len(seen) != 1 || len(seen[0].Events) != 1 || len(seen[0].Left) != 1 ||
		seen[0].Left[0] != 4010*ms {
		t.Errorf("%+v", seen)
	}
}

// A client may use a port again before anybody asks what was seen. Writes are read after packets.
func TestTakeOfPortsUsedAgain(t *testing.T) {
	t.Run("writes of one connection late", func(t *testing.T) { portsUsedAgain(t, false) })
	t.Run("all writes late", func(t *testing.T) { portsUsedAgain(t, true) })
}

func portsUsedAgain(t *testing.T, late bool) {
	s := newStreamed(0)
	s.seqs = []uint32{0}
	const second = 1_000_000_000
	var asked []int64
	for i, base := range []uint32{0, 3_000_000_000, 3_000_000_000 + 1<<20} {
		s.now += second
		s.ask(0, base)
		if !late {
			s.write() // those to the connection before
		}
		asked = append(asked, s.now)
		for _, text := range []string{"one", " two", " three"}[:i+1] {
			s.send(0, chunk(says(text)))
		}
		s.send(0, ended)
	}
	s.write()
	seen := s.log.Take(benchPlace)
	slices.SortFunc(seen, func(a, b Seen) int { return int(a.Came - b.Came) })
	if len(seen) != len(asked) {
		t.Fatalf("%d responses: %+v", len(seen), seen)
	}
	by := Client{Dialled: []netip.AddrPort{benchServer}}
	for i, x := range seen {
		var texts []openai.Text
		for _, e := range x.Events {
			texts = append(texts, e.Text)
		}
		a := &Asked{Sent: asked[i], Texts: texts, Read: x.Departed}
		a.Arrived = func(offset int64) (int64, bool) {
			return s.log.Arrived(by, benchClient(0).Port(), a.Sent, offset)
		}
		rows, missed := Divide([]Seen{x}, a)
		if len(x.Events) != i+1 || x.Mark != theMark || len(x.Wrote) != i+1 || len(rows) != i+1 ||
			missed != 0 {
			t.Errorf("response %d: %+v, %d rows, %d missed", i, x, len(rows), missed)
		}
		for _, r := range rows {
			if wire := r[Queue+1]; wire != 1000 {
				t.Errorf("response %d: %d ns on the wire", i, wire)
			}
		}
	}
	if seen := s.log.Take(benchPlace); len(seen) != 0 {
		t.Errorf("%d responses again", len(seen))
	}
}

// A reply to HEAD has a length, but no body. A request with a mark may be answered by no stream.
func TestTakeOfOtherRequests(t *testing.T) {
	s := newStreamed(0)
	c := benchClient(0)
	const plain = "HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n"
	asks := []string{"HEAD / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nX-Request-Id: " + strconv.Itoa(theMark) +
		"\r\n\r\n", benchRequest}
	replies := []string{plain, plain + strings.Repeat("x", 400), chunks + chunk(says("one")) + ended}
	asked, replied := uint32(1), uint32(1)
	for i, ask := range asks { // of a connection that is older than the log
		s.pass(c, benchServer, asked, replied, capture.ACK, ask)
		asked += uint32(len(ask))
		s.pass(benchServer, c, replied, asked, capture.ACK, replies[i])
		replied += uint32(len(replies[i]))
	}
	seen := s.log.Take(benchPlace)
	if len(seen) != 2 || seen[0].Reply != Aside || seen[0].Mark != theMark || seen[1].Reply != Streamed ||
		len(seen[1].Events) != 1 {
		t.Errorf("%+v", seen)
	}
	s.pass(c, benchServer, asked, replied, capture.RST, "")
	if s.log.Take(benchPlace); len(s.log.conns) != 0 {
		t.Error("the connection is not over")
	}
}

// Of one choice, each event is read, whatever its index is. Of several, those of one are.
func TestTakeOfChoices(t *testing.T) {
	for several, want := range map[bool]int{false: 4, true: 2} {
		l := NewLog(mine)
		l.Several = several
		l.Serve(theServer, nil)
		c := &conversation{log: l, asked: 100, replied: 9000, client: netip.AddrPortFrom(relayAt2, 41000)}
		c.send(false, benchRequest)
		c.send(true, chunks)
		for i := range 4 {
			c.send(true, chunk(strings.Replace(says("x"), "{\"delta", fmt.Sprintf("{\"index\":%d,\"delta", i%2), 1)))
		}
		c.send(true, ended)
		if seen := l.Take(theServer); len(seen) != 1 || len(seen[0].Events) != want {
			t.Errorf("several %t: %+v, want %d events", several, seen, want)
		}
	}
}
