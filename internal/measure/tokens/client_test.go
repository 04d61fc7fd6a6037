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

// TestServedClients has a client of the server's machine, in another namespace, which writes 10 µs
// before its request is at the server, has read its reply 30 µs after it left, and asks again 60 µs
// later, and one that is elsewhere.
func TestServedClients(t *testing.T) {
	here := netip.AddrPortFrom(relayAt2, 41000)
	servesClient(t, pair{here, serverAt}, here)
}

// TestServedTranslatedClients has packet filters that change the client's address, and the server's.
func TestServedTranslatedClients(t *testing.T) {
	servesClient(t, pair{netip.MustParseAddrPort("172.30.0.5:50000"),
		netip.MustParseAddrPort("172.30.0.1:8080")}, netip.AddrPortFrom(relayAt2, 41000))
}

// servesClient has a client with a socket, which the server knows by another address.
func servesClient(t *testing.T, socket pair, here netip.AddrPort) {
	t.Helper()
	const base, replyBase, size, n = 100, 9000, 50, 10
	l := NewServer()
	l.Serve(theServer, nil)
	l.Dialled(socket.remote.Port())
	elsewhere := netip.AddrPortFrom(clientAt, 42000)
	for i := range uint32(n) {
		at := int64(time.Second) + int64(i)*200*us
		for _, client := range []netip.AddrPort{here, elsewhere} {
			from, back := uint32(base), uint32(replyBase) // each connection has its own numbers
			if client == elsewhere {
				from, back = 5*base, 5*replyBase
			}
			side := writes.Event{At: at - 10*us, Local: socket.local.Port(),
				LocalAddr: socket.local.Addr(), Remote: socket.remote.Port(),
				RemoteAddr: socket.remote.Addr(), Kind: writes.Write, Seq: from + i*size, Len: size}
			if client == here {
				l.AddWrite(3, side)
			}
			l.Add(2, &capture.Packet{At: at, Src: client, Dst: serverAt, Flags: capture.ACK,
				Seq: from + i*size, Ack: back + i*size, Size: size})
			l.Add(2, &capture.Packet{At: at + 100*us, Out: true, Src: serverAt, Dst: client,
				Flags: capture.ACK, Seq: back + i*size, Size: size})
			side.At, side.Kind, side.Seq = at+130*us, writes.Read, back+i*size
			if client == here {
				l.AddWrite(3, side)
			}
		}
	}
	var all Requests
	all.Take(l, theServer, math.MaxInt64)
	var e sample.Served
	all.Note(&e, time.Unix(0, 0))
	if e.Requests != 2*n || e.Client == nil || e.Client.Requests != n {
		t.Fatalf("%+v, %+v", e, e.Client)
	}
	for i, want := range []float64{10e-6, 100e-6, 30e-6} {
		if p := e.Client.Parts[i]; math.Abs(p.Mean-want) > 1e-9 {
			t.Errorf("%s: %g s, want %g", p.Part, p.Mean, want)
		}
	}
	if w, b := e.Client.Whole.Mean, e.Client.Between.Mean; math.Abs(w-140e-6) > 1e-9 ||
		math.Abs(b-60e-6) > 1e-9 {
		t.Errorf("a request takes %g s, the next one comes after %g", w, b)
	}
}
