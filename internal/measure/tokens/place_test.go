package tokens

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/kernel/writes"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// TestServedAtOnePort has two servers at one port, and clients of one port, whose connections have
// the same sequence numbers.
func TestServedAtOnePort(t *testing.T) {
	const base, replyBase, size = 100, 9000, 50
	servers := [...]netip.AddrPort{netip.MustParseAddrPort("10.0.0.2:80"),
		netip.MustParseAddrPort("10.0.0.3:80")}
	clients := [...]netip.AddrPort{netip.MustParseAddrPort("10.0.0.8:4000"),
		netip.MustParseAddrPort("10.0.0.9:4000")}
	for name, tt := range map[string]struct {
		socket netip.Addr // of the first client's connection to the first server; zero: the packets'
	}{
		"each its own":    {},
		"a packet filter": {netip.MustParseAddr("10.0.9.9")},
	} {
		serves := func(server, client int) int64 { return int64(100*(1+server)+10*client) * us }
		places := [2]Place{}
		play := func() *Log {
			l := NewServer()
			for i, s := range servers {
				places[i] = Place{Space: 2, Port: 80, Addr: s.Addr()}
				l.Serve(places[i], func(to netip.Addr) bool {
					return to == s.Addr() || i == 0 && to == tt.socket && to.IsValid()
				})
			}
			for n := range uint32(10) {
				at := int64(time.Second) + int64(n)*1000*us
				for i, s := range servers {
					for k, c := range clients {
						l.Add(2, &capture.Packet{At: at, Src: c, Dst: s, Flags: capture.ACK,
							Seq: base + n*size, Ack: replyBase + n*size, Size: size})
						e := writes.Event{At: at + serves(i, k), Local: 80, Remote: 4000,
							LocalAddr: s.Addr(), RemoteAddr: c.Addr(), Seq: replyBase + n*size,
							Len: size, Kind: writes.Write}
						if i == 0 && k == 0 && tt.socket.IsValid() {
							e.LocalAddr = tt.socket
						}
						l.AddWrite(2, e)
						e.Kind = writes.Send
						l.AddWrite(2, e)
						l.Add(2, &capture.Packet{At: at + 500*us, Out: true, Src: s, Dst: c,
							Flags: capture.ACK, Seq: replyBase + n*size, Size: size})
					}
				}
			}
			return l
		}
		for i := range servers {
			var all Requests
			l := play()
			all.Take(l, places[i], math.MaxInt64)
			var e sample.Served
			all.Note(&e, time.Unix(0, 0))
			if e.Requests != 20 || e.Connections != 2 || e.Unmatched != 0 || !e.Writes {
				t.Fatalf("%s: server %d: %+v", name, i, e)
			}
			want := seconds(serves(i, 0)+serves(i, 1)) / 2
			if got := e.Parts[1]; got.Part != sample.EvidenceServer || math.Abs(got.Mean-want) > 1e-9 {
				t.Errorf("%s: server %d: %+v, want %g s", name, i, got, want)
			}
		}
	}
}
