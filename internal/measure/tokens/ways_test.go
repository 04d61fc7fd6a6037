package tokens

import (
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/capture"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// stop is a point at which packets are so long after the point before, in µs.
type stop struct {
	Point
	after int64
}

// Devices of a machine on which a published port is redirected to a container behind a bridge: the
// client's and the server's own, and in namespace 3 the wire, the bridge, and its port.
const ownDevice, wireDevice, bridgeDevice, portDevice = 2, 5, 6, 7

var (
	theRouter = 3
	publishes = netip.MustParseAddrPort("10.0.0.2:8080")
	goes      = []stop{{Point{0, ownDevice, true}, 0}, {Point{theRouter, wireDevice, false}, 1},
		{Point{theRouter, bridgeDevice, true}, 3}, {Point{theRouter, portDevice, true}, 2},
		{Point{2, ownDevice, false}, 4}}
	comes = []stop{{Point{2, ownDevice, true}, 0}, {Point{theRouter, portDevice, false}, 4},
		{Point{theRouter, bridgeDevice, false}, 2}, {Point{theRouter, wireDevice, true}, 3},
		{Point{0, ownDevice, false}, 1}}
)

// routed plays exchanges over the machine. request and reply return where the i-th goes.
type routed struct {
	log            *Log
	request, reply func(i int) []stop
}

func newRouted() *routed {
	l := NewLog(nil)
	l.Serve(theServer, nil)
	l.Dial(0, publishes.Port())
	l.Between = func(from, to Point, routed bool) (Leg, bool) {
		switch a, b := from.Device, to.Device; {
		case from.Space != to.Space:
			return Leg{sample.LegVeth, ""}, from.Out && !to.Out
		case min(a, b) == bridgeDevice && max(a, b) == portDevice:
			return Leg{sample.LegBridge, "docker0"}, !routed
		case !from.Out && to.Out && from.Device != portDevice:
			return Leg{Kind: sample.LegRouting}, routed
		}
		return Leg{}, false
	}
	return &routed{l, func(int) []stop { return goes }, func(int) []stop { return comes }}
}

// pass makes a packet pass stops, and returns when it has. The router redirects it.
func (r *routed) pass(at int64, way []stop, p capture.Packet) int64 {
	p.TTL = 64
	for _, s := range way {
		at += s.after * us
		q := p
		q.At, q.Device, q.Out = at, s.Device, s.Out
		// A port of a bridge receives what is for the bridge's address.
		q.Bridged = s.Device == portDevice && !s.Out
		behind := s.Space == 2 || s.Device == bridgeDevice || s.Device == portDevice
		if way[0].Space == 0 == behind {
			q.TTL--
		}
		for _, a := range []*netip.AddrPort{&q.Src, &q.Dst} {
			if behind && *a == publishes {
				*a = serverAt
			}
		}
		r.log.Add(s.Space, &q)
	}
	return at
}

// play makes n exchanges, each over 5 µs of the server's.
func (r *routed) play(n int) (all []Exchange) {
	client := netip.AddrPortFrom(clientAt, 40000)
	out := capture.Packet{Src: client, Dst: publishes, Flags: capture.SYN, Seq: 99}
	back := capture.Packet{Src: publishes, Dst: client, Flags: capture.SYN | capture.ACK, Seq: 499}
	r.pass(r.pass(0, r.request(1), out), r.reply(1), back)
	out.Flags, back.Flags = capture.ACK, capture.ACK
	out.Seq, back.Seq, out.Size, back.Size = 100, 500, 10, 20
	for i := range n {
		sent := int64(1000+i*1000) * us
		read := r.pass(r.pass(sent+us, r.request(i), out)+5*us, r.reply(i), back) + us
		out.Seq, back.Seq = out.Seq+10, back.Seq+20
		all = append(all, Exchange{Local: 40000, Sent: sent, Read: read})
	}
	return all
}

// onNetwork returns the means of the parts on the network, in µs, and checks that all sum up.
func onNetwork(t *testing.T, x *sample.Trace, sum float64) map[sample.Part]float64 {
	t.Helper()
	out := map[sample.Part]float64{}
	whole := 0.0
	for _, g := range x.Segments {
		if whole += g.MidMean; g.Hop == "network" && g.Part != sample.PartTransfer {
			out[g.Part] += math.Round(g.MidMean*1e9) / 1e3
		}
	}
	if math.Abs(whole-x.MidMean) > 1e-12 || math.Abs(whole*1e6-sum) > 1e-3 {
		t.Errorf("segments sum to %g of %g, want %g µs: %+v", whole, x.MidMean, sum, x.Segments)
	}
	return out
}

const (
	veth    = sample.PartNetwork + sample.InPart + sample.LegVeth
	bridged = sample.PartNetwork + sample.InPart + sample.LegBridge
	forward = sample.PartNetwork + sample.InPart + sample.LegRouting
)

// later returns a way on which a stop is reached later.
func later(way []stop, i int, by int64) func(int) []stop {
	out := slices.Clone(way)
	out[i].after += by
	return func(int) []stop { return out }
}

// some returns a way that most exchanges take, and one for the others.
func some(most, others []stop, every int) func(int) []stop {
	return func(i int) []stop {
		if i%every == 0 {
			return others
		}
		return most
	}
}

func without(way []stop, i int) []stop {
	out := slices.Delete(slices.Clone(way), i, i+1)
	out[i].after += way[i].after
	return out
}

func TestNetworkIsDivided(t *testing.T) {
	const whole, n = 2 + 5 + 20, 100
	parts := map[sample.Part]float64{veth: 10, bridged: 4, forward: 6}
	with := func(part sample.Part, by float64) map[sample.Part]float64 {
		out := maps.Clone(parts)
		out[part] += by
		return out
	}
	undivided := map[sample.Part]float64{sample.PartNetwork: 20}
	sameTime, noted := slices.Clone(comes), slices.Clone(goes)
	sameTime[2].after, sameTime[3].after = 0, 5                   // at the bridge as at its port
	noted = append(noted, stop{Point{2, bridgeDevice, false}, 0}) // by the device before the server's
	for name, tt := range map[string]struct {
		change func(*routed)
		want   map[sample.Part]float64
		sum    float64
	}{
		"as it is": {func(*routed) {}, parts, whole},
		"rules": {func(r *routed) {
			r.request, r.reply = later(goes, 2, 7), later(comes, 3, 7)
		}, with(forward, 14), whole + 14},
		"frames that iptables sees": {func(r *routed) {
			r.request, r.reply = later(goes, 3, 3), later(comes, 2, 3)
		}, with(bridged, 6), whole + 6},
		"a slow device": {func(r *routed) { r.request = later(goes, 4, 9) },
			with(veth, 9), whole + 9},
		"few another way": {func(r *routed) {
			r.request = some(goes, without(goes, 2), n/4)
		}, parts, whole},
		"many another way": {func(r *routed) { r.reply = some(comes, without(comes, 2), 3) },
			undivided, whole},
		"not all of it is known": {func(r *routed) {
			r.log.Between = func(Point, Point, bool) (Leg, bool) { return Leg{}, false }
		}, undivided, whole},
		"the time of another device": {func(r *routed) {
			r.reply = func(int) []stop { return sameTime }
		}, undivided, whole},
		"the server's device has another's time": {func(r *routed) {
			r.request = func(int) []stop { return noted }
		}, parts, whole},
		"nobody asks": {func(r *routed) { r.log.Between = nil }, undivided, whole},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRouted()
			tt.change(r)
			all := r.play(n)
			got := r.log.Follow(0, []Hop{{Place: theServer, Name: "redis"}}, all)
			if got.Followed != n || got.Stamped != strings.HasPrefix(name, "the server's") {
				t.Fatalf("%d followed, stamped %t: %+v", got.Followed, got.Stamped, got.Broken)
			}
			for part, x := range onNetwork(t, got, tt.sum) {
				if math.Abs(x-tt.want[part]) > 1e-3 {
					t.Errorf("%s takes %g µs, want %v", part, x, tt.want)
				}
			}
			if parts := onNetwork(t, got, tt.sum); len(parts) != len(tt.want) {
				t.Errorf("%v, want %v", parts, tt.want)
			}
			// Each device that packets pass captures them, whether the network is divided or not.
			want := float64(len(goes) - 1 + len(comes) - 1)
			if r.log.Between == nil {
				want = 2
			}
			events := 0.0
			for _, g := range got.Segments {
				if g.Hop == string(sample.PartNetwork) && g.Part != sample.PartTransfer {
					events += g.Events
				}
			}
			if events != want {
				t.Errorf("%g records on the network, want %g", events, want)
			}
		})
	}
}

// TestNotAllKept has more packets than are kept, or only bare acknowledgements beyond them, which need
// no room.
func TestNotAllKept(t *testing.T) {
	const n = 100
	each := len(goes) + len(comes)
	for _, tt := range []struct{ kept, acks, unkept int }{
		{n, 0, 0}, {n, 1000, 0}, {n / 4, 0, n - n/4}, {0, 0, n}} {
		r := newRouted()
		r.log.passings.most = (1+tt.kept)*each + len(goes) // with those of the SYNs
		other := capture.Packet{Src: netip.AddrPortFrom(clientAt, 40001), Dst: publishes,
			Flags: capture.SYN, Seq: 999}
		r.pass(0, goes, other)
		other.Flags, other.Seq = capture.ACK, 1000
		for range tt.acks {
			r.pass(0, goes, other)
		}
		got := r.log.Follow(0, []Hop{{Place: theServer, Name: "redis"}}, r.play(n))
		if got.Followed != n || got.Unkept != tt.unkept {
			t.Errorf("%+v: %d followed, %d of them not kept", tt, got.Followed, got.Unkept)
		}
		want := map[sample.Part]float64{veth: 10, bridged: 4, forward: 6}
		if tt.kept == 0 {
			want = map[sample.Part]float64{sample.PartNetwork: 20}
		}
		if parts := onNetwork(t, got, 27); !maps.Equal(parts, want) {
			t.Errorf("%+v: %v, want %v", tt, parts, want)
		}
	}
}

// TestBridgedTwice passes a bridge before and behind a router: both are one part of each way.
func TestBridgedTwice(t *testing.T) {
	r := newRouted()
	twice := slices.Clone(goes[:2])
	twice[1].Device = portDevice
	twice = append(twice, stop{Point{theRouter, bridgeDevice, false}, 2}, goes[2], goes[3], goes[4])
	r.request = func(int) []stop { return twice }
	before := r.log.Between
	r.log.Between = func(from, to Point, routed bool) (Leg, bool) {
		if from.Device == to.Device && from.Device == bridgeDevice {
			return Leg{Kind: sample.LegRouting}, true
		}
		return before(from, to, routed)
	}
	got := r.log.Follow(0, []Hop{{Place: theServer, Name: "redis"}}, r.play(10))
	want := map[sample.Part]float64{veth: 10, bridged: 6, forward: 6}
	for part, x := range onNetwork(t, got, 29) {
		if x != want[part] {
			t.Errorf("%s takes %g µs, want %v", part, x, want)
		}
	}
	for _, g := range got.Segments {
		if g.Part == bridged && !g.Reply && g.Events != 2 {
			t.Errorf("%+v", g)
		}
	}
}
