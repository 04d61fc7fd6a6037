package tokens

import (
	"math"
	"net/netip"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/kernel/writes"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

var (
	chainOver = []Hop{{Place: theServer, Name: "postgres", From: []Place{{Space: 1, Port: 5432}}},
		{Place: theRelay, Name: "proxy", From: []Place{{Space: 0, Port: 80}}}}
	plain = []sample.Part{sample.PartClient, sample.PartTransfer, sample.PartNetwork,
		sample.PartRelayed, sample.PartNetwork, sample.PartServer, sample.PartServerTCP,
		sample.PartServerQueue, sample.PartNetwork, sample.PartRelayed, sample.PartNetwork,
		sample.PartTransfer, sample.PartClient}
)

// play makes exchanges over a relay, which the client sends 3 µs before its device and reads 7 µs
// after it. The server writes 2 µs before its device, 1 µs of which is TCP's.
func play(o *over, n int, serves int64) (all []Exchange) {
	o.log.Dial(1, 5432)
	o.open(1000*us, 40000)
	for i := range n {
		at := int64(10_000*us) + int64(i)*10_000*us
		o.exchange(at, 40000, i, serves)
		for k := range 2 {
			left := at + 20*us + serves + int64(k)*50*us
			e := writes.Event{At: left - 2*us, Seq: uint32(i*reply1+k*reply1/2) + 8,
				Len: uint32(reply1 / 2), Local: 5432, Remote: 41000, Kind: writes.Write}
			o.log.AddWrite(2, e)
			e.At, e.Kind = left-us, writes.Send
			o.log.AddWrite(2, e)
		}
		end := at + 20*us + serves + 50*us + 20*us
		all = append(all, Exchange{Slot: i * 4 / n, Local: 40000, Sent: at - 3*us, Read: end + 7*us})
	}
	return all
}

func TestFollow(t *testing.T) {
	o := newOver()
	all := play(o, 40, 200*us)
	got := o.log.Follow(0, chainOver, all)
	if got.Trips != 40 || got.Followed != 40 || len(got.Slots) != 4 || len(got.Broken) != 0 {
		t.Fatalf("%+v", got)
	}
	want := []float64{3, 0, 5, 10, 5, 198, 1, 1, 5, 10, 5, 50, 7}
	sum := 0.0
	for i, g := range got.Segments {
		part := plain[i]
		if g.Part != part || math.Abs(g.MidMean*1e6-want[i]) > 1e-6 ||
			math.Abs(g.MidMeans[3]*1e6-want[i]) > 1e-6 || math.Abs(g.Slowest*1e6-want[i]) > 1e-6 {
			t.Errorf("segment %d is %+v, want %s of %v µs", i, g, part, want[i])
		}
		sum += g.MidMean
	}
	if len(got.Segments) != len(want) || math.Abs(sum-got.MidMean) > 1e-12 ||
		math.Abs(got.MidMean-300e-6) > 1e-12 {
		t.Errorf("segments sum to %v of %v", sum, got.MidMean)
	}
}

// TestFollowAsked has the exchanges of a client of which only the packets are known.
func TestFollowAsked(t *testing.T) {
	o := newOver()
	play(o, 40, 200*us)
	all := o.log.Asked(theClient, 4)
	if len(all) != 36 || all[0].Slot != 0 || all[35].Slot != 3 || all[0].Local != 40000 ||
		all[0].Read-all[0].Sent != 290*us {
		t.Fatalf("%d exchanges: %+v", len(all), all)
	}
	elsewhere := Client{Dialled: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.3:80")}}
	if others := o.log.Asked(elsewhere, 4); len(others) > 0 {
		t.Errorf("at another port: %+v", others)
	}
	got := o.log.FollowAsked(0, chainOver, all)
	want := []float64{0, 5, 10, 5, 198, 1, 1, 5, 10, 5, 50}
	for i, g := range got.Segments {
		if g.Part != plain[i+1] || math.Abs(g.MidMean*1e6-want[i]) > 1e-6 {
			t.Errorf("segment %d is %+v, want %v µs", i, g, want[i])
		}
	}
	if got.Trips != 36 || got.Followed != 36 || len(got.Segments) != len(want) ||
		math.Abs(got.MidMean-290e-6) > 1e-12 || len(got.Slots) != 4 {
		t.Errorf("%+v", got)
	}
}

// TestAskedStreams has a client of h2c.
func TestAskedStreams(t *testing.T) {
	o := newOver()
	o.open(0, 40000)
	b := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	o.both(1000*us, 0, 1, capture.Packet{Src: netip.AddrPortFrom(clientAt, 40000), Dst: relayAt,
		Seq: o.base + 40000 + 1, Payload: b, Size: len(b)})
	if all := o.log.Asked(theClient, 4); len(all) != 0 || !o.log.Streams(theClient) {
		t.Errorf("%+v", all)
	}
	o = newOver()
	play(o, 40, 200*us)
	if o.log.Streams(theClient) {
		t.Error("another protocol is taken for h2c")
	}
}

// TestFollowBroken checks that what was not seen is lost, with the step after which.
func TestFollowBroken(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(o *over, all []Exchange)
		want  sample.Break
	}{
		"not sent": {func(_ *over, all []Exchange) { all[7].Sent, all[7].Read = 5, 6 },
			sample.Break{Share: 0.1, After: "request sent", Want: "request at the client's device"}},
		"not written": {func(o *over, _ []Exchange) {
			for _, sockets := range o.log.writes {
				for p, list := range sockets {
					sockets[p] = append(list[:12:12], list[16:]...)
				}
			}
		}, sample.Break{Share: 0.1, After: "request at postgres", Want: "write of postgres"}},
		"early reply": {func(_ *over, all []Exchange) { all[3].Read = all[3].Sent + 20*us },
			sample.Break{Share: 0.1, After: "end of the reply there", Want: "a later reply read"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOver()
			all := play(o, 10, 200*us)
			tt.spoil(o, all)
			got := o.log.Follow(0, chainOver, all)
			if got.Followed != 9 || len(got.Broken) != 1 || got.Broken[0] != tt.want {
				t.Errorf("%d followed, broken: %+v", got.Followed, got.Broken)
			}
		})
	}
}
