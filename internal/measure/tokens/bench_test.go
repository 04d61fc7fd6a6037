package tokens

import (
	"fmt"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/kernel/writes"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
)

// streamed plays responses over loopback, many at once, into a log.
type streamed struct {
	log  *Log
	now  int64
	seqs []uint32 // of the server's next byte, by session
	held []writes.Event
}

var (
	benchServer = netip.MustParseAddrPort("127.0.0.1:8000")
	benchPlace  = Place{Space: 0, Port: 8000}
)

const benchRequest = "POST / HTTP/1.1\r\nX-Request-Id: toll-1234567890\r\n\r\n"

func benchClient(k int) netip.AddrPort {
	return netip.AddrPortFrom(benchServer.Addr(), uint16(20000+k))
}

// pass adds a packet as it leaves and as it comes.
func (s *streamed) pass(src, dst netip.AddrPort, seq, ack uint32, flags uint8, payload string) {
	for _, out := range []bool{true, false} {
		s.now += 1000
		s.log.Add(0, &capture.Packet{At: s.now, Out: out, Src: src, Dst: dst, Seq: seq, Ack: ack,
			Flags: flags, TSVal: 1, Payload: []byte(payload), Size: len(payload)})
	}
}

func newStreamed(sessions int) *streamed {
	s := &streamed{log: NewLog(mine), now: 1e18, seqs: make([]uint32, sessions)}
	s.log.Serve(benchPlace, nil)
	s.log.Dial(0, benchServer.Port())
	for k := range sessions {
		s.ask(k, 0)
	}
	return s
}

// ask opens a connection with a sequence number, and asks.
func (s *streamed) ask(k int, base uint32) {
	c := benchClient(k)
	s.pass(c, benchServer, base, 0, capture.SYN, "")
	s.pass(benchServer, c, base, base+1, capture.SYN|capture.ACK, "")
	s.pass(c, benchServer, base+1, base+1, capture.ACK, benchRequest)
	s.pass(benchServer, c, base+1, base+1, capture.ACK, chunks)
	s.seqs[k] = base + 1 + uint32(len(chunks))
}

// send plays bytes that a server writes, and their acknowledgement.
func (s *streamed) send(k int, text string) {
	c, seq := benchClient(k), s.seqs[k]
	e := writes.Event{At: s.now, Seq: seq, Len: uint32(len(text)), Local: benchServer.Port(),
		Remote: c.Port(), LocalAddr: benchServer.Addr(), RemoteAddr: c.Addr(), Kind: writes.Write}
	s.held = append(s.held, e)
	e.Kind = writes.Send
	s.held = append(s.held, e)
	s.pass(benchServer, c, seq, 1, capture.ACK, text)
	s.seqs[k] += uint32(len(text))
	s.pass(c, benchServer, 1+uint32(len(benchRequest)), s.seqs[k], capture.ACK, "")
}

// write adds the writes so far, which are read after the packets.
func (s *streamed) write() {
	for _, e := range s.held {
		s.log.AddWrite(0, e)
	}
	s.held = s.held[:0]
}

// BenchmarkLog follows responses as vLLM sends them, and divides their times. It reports the CPU
// time: on a busy machine, the time on the clock says little.
func BenchmarkLog(b *testing.B) {
	const sessions, each = 100, 50
	by := Client{Space: 0, Dialled: []netip.AddrPort{benchServer}}
	cpu := func() int64 {
		var t unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t)
		return t.Nano()
	}
	tokens, used := 0, int64(0)
	for ; tokens < b.N; tokens += sessions * each {
		s := newStreamed(sessions)
		began := cpu()
		for i := range each {
			for k := range sessions {
				s.send(k, chunk(fmt.Sprintf(`data: {"id":"chatcmpl-0d3b1d3e9c4a4f0b","object":`+
					`"chat.completion.chunk","created":1764470000,"model":"m","choices":[{"index":0,`+
					`"delta":{"content":" word%d"},"logprobs":null,"finish_reason":null}]}`+"\n\n", i)))
			}
			s.write()
		}
		for k := range sessions {
			s.send(k, ended)
		}
		s.write()
		seen := s.log.Take(benchPlace)
		if len(seen) != sessions {
			b.Fatalf("%d responses", len(seen))
		}
		var texts []openai.Text
		for _, e := range seen[0].Events {
			texts = append(texts, e.Text)
		}
		for k, x := range seen {
			a := &Asked{Texts: texts, Read: x.Departed, Arrived: func(o int64) (int64, bool) {
				return s.log.Arrived(by, benchClient(k).Port(), s.now, o)
			}}
			if rows, missed := Divide([]Seen{x}, a); len(rows) != each || missed > 0 {
				b.Fatalf("%d rows, %d missed", len(rows), missed)
			}
		}
		used += cpu() - began
	}
	b.ReportMetric(float64(used)/float64(tokens), "cpu-ns/token")
}
