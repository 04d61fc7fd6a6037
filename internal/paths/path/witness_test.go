package path

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestWitness(t *testing.T) {
	const window = 0.35 // s
	bulk := Moved{Forward: 1 << 30, Connections: 1, Segment: 1448, Seconds: 1}
	rr := Moved{Forward: 10_000, Backward: 10_000, Trips: 10_000, Connections: 1,
		Shape: Shape{Request: 1, Reply: 1}, Segment: 1448, Seconds: 1}
	few := rr
	few.Forward, few.Backward, few.Trips = 870, 870, 870
	large := rr
	large.Forward, large.Request = 10_000*8192, 8192
	tokens := Moved{Forward: 1_800, Backward: 300_000, Connections: 10,
		Shape: Shape{Request: 600, Reply: 300}, Segment: 1448, Seconds: 1}
	beside := rr
	beside.Forward, beside.SentForward, beside.Beside = 10_000+1<<30, 10_000+1<<30, true
	udp := Moved{Forward: 1400 * 1000, Resent: 1400 * 10, Connections: 1,
		Shape: Shape{Request: 1400, Reply: 1400, Datagrams: true}, Segment: 1452, Seconds: window}
	udpRR := Moved{Forward: 1_000, Backward: 1_000, Trips: 1_000, Connections: 1,
		Shape: Shape{Request: 1, Reply: 1, Datagrams: true}, Segment: 1452, Seconds: window}
	crr := Moved{Forward: 5_000, Backward: 5_000, Trips: 5_000, Connections: 5_002, Brief: true,
		Shape: Shape{Request: 1, Reply: 1}, Seconds: window}
	failing := crr
	failing.Failed = 3
	both := func(fb, fp, bb, bp uint64) sample.Counters {
		return sample.Counters{ForwardBytes: fb, ForwardPackets: fp, BackwardBytes: bb,
			BackwardPackets: bp}
	}
	for _, c := range []struct {
		name   string
		expect Expect
		moved  Moved
		got    sample.Counters
		want   string // "": witnessed
	}{
		{"bulk", Carries, bulk, both(1<<30+2_000_000, 20_000, 600_000, 9_000), ""},
		{"bulk-one-byte-short", Carries, bulk, both(1<<30-1, 20_000, 600_000, 9_000),
			" x (): counted 1073741823 bytes to the server, the load moved 1073741824"},
		{"bulk-acks-elsewhere", Carries, bulk, both(1<<30+2_000_000, 20_000, 0, 0),
			" x (): counted 20000 packets to the server and 0 back: one direction took " +
				"another path"},
		{"bulk-other-traffic", Carries, bulk, both(2<<30, 20_000, 600_000, 9_000),
			" x (): counted 2147483648 bytes in 20000 packets to the server, the load can have " +
				"sent 1099784852: other traffic shares the path"},
		{"bulk-sent-again", Carries, Moved{Forward: 1 << 30, Resent: 1 << 30, Connections: 1,
			Seconds: window}, both(2<<30, 20_000, 600_000, 9_000), ""},
		{"rr", Carries, rr, both(670_000, 10_003, 670_000, 10_003), ""},
		{"bulk-in-flight", Carries, func() Moved {
			m := bulk
			m.SentForward = 1<<30 + 4<<20
			return m
		}(), both(1<<30+6<<20, 20_000, 600_000, 9_000), ""},
		{"bulk-cut-small", Carries, bulk, both(1<<30+80<<20, 800_000, 60_000_000, 740_000), ""},
		{"bulk-small-foreign-packets", Carries, bulk,
			both(1<<30+300<<20, 4_000_000, 600_000, 9_000), " x (): counted 4000000 packets " +
				"to the server, the load can have sent 1513253: other traffic shares the path"},
		{"bulk-many-small-writes", Carries, func() Moved {
			m := bulk
			m.Forward, m.Write = 1<<20, 64
			return m
		}(), both(1<<20+16384*66, 16384, 1_000_000, 16_000), ""},
		{"rr-acknowledged-late", Carries, few, both(870+66*1000, 1_000, 870+66*1000, 1_000), ""},
		{"rr-foreign-packets", Carries, few, both(4_500_000, 870+3_966, 870+66*900, 900),
			" x (): counted 4836 packets to the server, the load can have sent 1409: other " +
				"traffic shares the path"},
		{"rr-foreign-packets-back", Carries, few, both(870+66*900, 900, 700+10_677*66, 870+10_677),
			" x (): counted 11547 packets to the client, the load can have sent 1409: other " +
				"traffic shares the path"},
		{"rr-few-large-foreign-packets", Carries, few,
			both(870+66*900+60*65_000, 960, 870+66*900, 900), " x (): counted 3960270 bytes " +
				"in 960 packets to the server, the load can have sent 227959: other traffic " +
				"shares the path"},
		{"rr-large", Carries, large, both(10_000*(8192+6*66), 60_000, 10_000+66*70_000, 70_000),
			""},
		{"rr-beside-bulk", Carries, beside, both(1<<30+2_000_000, 40_000, 60_000_000, 400_000), ""},
		{"loopback-foreign", CarriesBoth, few, both(2*(870+66*900)+500_000, 1_800+2_000, 0, 0),
			" x (): counted 3800 packets both ways, the load can have sent 2755: other " +
				"traffic shares the path"},
		{"tokens-each-acknowledged", Carries, tokens,
			both(1_800+1_100*66, 1_100, 300_000+1_000*66, 1_000), ""},
		{"tokens-foreign", Carries, tokens, both(1_800+1_100*66, 1_100, 300_000+20_000*66, 20_000),
			" x (): counted 20000 packets to the client, the load can have sent 5667: other " +
				"traffic shares the path"},
		{"udp", Carries, udp, both(1400*1010+42*1010, 1_010, 200, 3), ""},
		{"udp-foreign", Carries, udp, both(1400*1010+42*1010+1400*500, 1_510, 200, 3),
			" x (): counted 1510 packets to the server, the load can have sent 1270: other " +
				"traffic shares the path"},
		{"rr-first-packets-only", Carries, rr, both(33_500, 500, 33_500, 500),
			" x (): counted 500 packets to the server, the load made 10000 trips"},
		{"rr-replies-elsewhere", Carries, rr, both(670_000, 10_003, 10_050, 150),
			" x (): counted 150 packets to the client, the load made 10000 trips"},
		{"loopback", CarriesBoth, rr, both(1_340_000, 20_006, 0, 0), ""},
		{"loopback-half", CarriesBoth, rr, both(670_000, 10_003, 0, 0), " x (): counted 10003 " +
			"packets both ways, the load made 20000 trips"},
		{"proxy-counts-bytes-only", Carries, rr, both(10_000, 0, 10_001, 0), ""},
		{"proxy-saw-less", Carries, rr, both(9_999, 0, 10_000, 0), " x (): counted 9999 bytes " +
			"to the server, the load moved 10000"},
		{"rule", Matches, bulk, sample.Counters{Hits: 1}, ""},
		{"rule-sent-syn-again", Matches, bulk, sample.Counters{Hits: 2}, ""},
		{"rule-not-hit", Matches, bulk, sample.Counters{}, " x (): hit 0 times by 1 connection"},
		{"rule-hit-by-others", Matches, bulk, sample.Counters{Hits: 9}, " x (): hit 9 times, " +
			"the load opened only 1 connection"},
		{"guard", Untouched, bulk, both(270, 3, 90, 1), ""},
		{"guard-of-a-crowd", Untouched, Moved{Forward: 1 << 30, Connections: 17},
			both(5496, 86, 0, 0), ""},
		{"guard-of-a-crowd-used", Untouched, Moved{Forward: 1 << 30, Connections: 17},
			both(5496, 200, 0, 0), " x (): counted 5496 bytes in 200 packets, the path must " +
				"not use it"},
		{"guard-used", Untouched, bulk, both(600_000, 9_000, 0, 0), " x (): counted 600000 " +
			"bytes in 9000 packets, the path must not use it"},
		{"guard-rule-hit", Untouched, bulk, sample.Counters{Hits: 1}, " x (): hit 1 time, " +
			"the path must not use it"},
		{"crr", Carries, crr, both(1_700_000, 25_010, 1_360_000, 20_008), ""},
		{"crr-half-elsewhere", Carries, crr, both(1_700_000, 25_010, 160_000, 2_400),
			" x (): counted 2400 packets to the client, the load made 5000 trips"},
		{"crr-foreign", Carries, crr, both(1_700_000, 225_010, 1_360_000, 20_008),
			" x (): counted 225010 packets to the server, the load can have sent 127613: other " +
				"traffic shares the path"},
		{"crr-rule", Matches, crr, sample.Counters{Hits: 5_002}, ""},
		{"crr-rule-syns-sent-again", Matches, crr, sample.Counters{Hits: 5_060}, ""},
		{"crr-rule-failures", Matches, failing, sample.Counters{Hits: 5_005}, ""},
		{"crr-rule-missed-one", Matches, crr, sample.Counters{Hits: 5_001},
			" x (): hit 5001 times by 5002 connections"},
		{"crr-rule-shared", Matches, crr, sample.Counters{Hits: 6_000}, " x (): hit 6000 " +
			"times, the load opened only 5002 connections"},
		{"crr-guard-used", Untouched, crr, both(340_000, 5_002, 0, 0), " x (): counted 340000 " +
			"bytes in 5002 packets, the path must not use it"},
		{"relayed", Relays, rr, both(10_000, 0, 10_000, 0), ""},
		{"relayed-too-few-bytes", Relays, rr, sample.Counters{Hits: 1}, " x (): counted 0 " +
			"bytes to the server, the load moved 10000"},
		{"crr-relayed", Relays, crr, sample.Counters{Hits: 5_002}, ""},
		{"crr-not-relayed", Relays, crr, both(5_000, 0, 5_000, 0), " x (): relayed " +
			"connections 0 times by 5002 connections"},
		{"delivered", Delivers, udpRR, both(0, 2_020, 0, 0), ""},
		{"delivered-one-short", Delivers, udpRR, both(0, 1_999, 0, 0),
			" x (): received 1999 datagrams, the load moved 2000"},
		{"delivered-foreign", Delivers, udpRR, both(0, 2_600, 0, 0), " x (): received 2600 " +
			"datagrams, the load can have sent 2456: other traffic shares the path"},
		{"delivered-bulk", Delivers, udp, both(0, 1_010, 0, 0), ""},
		{"delivered-bulk-elsewhere", Delivers, udp, both(0, 3, 0, 0), " x (): received 3 " +
			"datagrams, the load moved 1000"},
		{"nothing-moved", Untouched, Moved{}, sample.Counters{}, "the load moved no byte"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := both(5, 5, 5, 5)
			before.Hits = 5
			after := sample.Counters{ForwardBytes: 5 + c.got.ForwardBytes,
				ForwardPackets: 5 + c.got.ForwardPackets,
				BackwardBytes:  5 + c.got.BackwardBytes, BackwardPackets: 5 + c.got.BackwardPackets,
				Hits: 5 + c.got.Hits}
			w := Witness([]Hop{{Name: "x", Expect: c.expect}}, []sample.Counters{before},
				[]sample.Counters{after}, c.moved)
			if w.OK != (c.want == "") || w.Evidence != c.want {
				t.Errorf("witness %+v, want %q", w, c.want)
			}
		})
	}
}

func TestRelaysSendAgain(t *testing.T) {
	moved := Moved{Forward: 3 << 20, Connections: 1, Segment: 1448, Seconds: 1}
	bridge := Hop{Name: "bridge", Expect: Carries, Clients: []int{0}}
	proxy := Hop{Name: "proxy", Expect: Relays, Clients: []int{0}}
	before := make([]sample.Counters, 2)
	carried := sample.Counters{ForwardBytes: 3_320_490, ForwardPackets: 169, BackwardBytes: 9_000,
		BackwardPackets: 137}
	relayed := sample.Counters{ForwardBytes: 3 << 20, Hits: 1}
	w := Witness([]Hop{bridge, proxy}, before, []sample.Counters{carried, relayed}, moved)
	if w.OK {
		t.Error("a bridge may count 174762 bytes that nobody sent")
	}
	relayed.ResentBytes = 130_966
	w = Witness([]Hop{bridge, proxy}, before, []sample.Counters{carried, relayed}, moved)
	if !w.OK {
		t.Error("what the proxy sent again is taken for other traffic: " + w.Evidence)
	}
	proxy.Clients = []int{1}
	w = Witness([]Hop{bridge, proxy}, before, []sample.Counters{carried, relayed}, moved,
		Moved{Forward: 3 << 20, Connections: 1})
	if w.Evidence != " bridge (): counted 3320490 bytes in 169 packets to the server, the "+
		"load can have sent 3255367: other traffic shares the path" {
		t.Error("what another client's proxy sent again excuses the bridge")
	}
}

// pasta sent 4618 packets for 2400 answers.
func TestUserSpaceAcknowledgesEach(t *testing.T) {
	rr := Moved{Forward: 2_400, Backward: 2_400, Trips: 2_400, Connections: 1,
		Shape: Shape{Request: 1, Reply: 1}, Segment: 1448, Seconds: 1}
	for _, c := range []struct {
		hop     Hop
		packets uint64
		want    bool
	}{{Hop{Kind: mode.HopTap}, 4_618, true}, {Hop{Kind: mode.HopVeth}, 4_618, false},
		{Hop{Kind: mode.HopVeth, BehindTap: true}, 4_618, true},
		{Hop{Kind: mode.HopTap}, 9_000, false}} {
		got := sample.Counters{ForwardBytes: 2_400 + 54*2_400, ForwardPackets: 2_400,
			BackwardBytes: 2_400 + 54*c.packets, BackwardPackets: c.packets}
		w := Witness([]Hop{c.hop}, make([]sample.Counters, 1), []sample.Counters{got}, rr)
		if w.OK != c.want {
			t.Errorf("%s, %d packets: %+v", c.hop.Kind, c.packets, w)
		}
	}
}

// The tap of pasta counted 4 % more than the load sent: its TCP tells nobody what it sends again.
func TestUserSpaceSendsAgain(t *testing.T) {
	bulk := Moved{Forward: 1 << 30, Connections: 1, Segment: 65_480, Seconds: 1}
	for _, c := range []struct {
		hop  Hop
		more uint64 // per cent
		want bool
	}{{Hop{Kind: mode.HopTap}, 4, true}, {Hop{Kind: mode.HopVeth}, 4, false},
		{Hop{Kind: mode.HopVeth, BehindTap: true}, 4, true}, {Hop{Kind: mode.HopTap}, 40, false}} {
		got := sample.Counters{ForwardBytes: 1<<30 + c.more<<30/100, ForwardPackets: 20_000,
			BackwardBytes: 600_000, BackwardPackets: 9_000}
		w := Witness([]Hop{c.hop}, make([]sample.Counters, 1), []sample.Counters{got}, bulk)
		if w.OK != c.want {
			t.Errorf("%s, %d %% more: %+v", c.hop.Kind, c.more, w)
		}
	}
}

func TestMarkBehindTap(t *testing.T) {
	for _, c := range []struct {
		to   mode.Target
		hops []mode.HopKind
		want []bool
	}{
		{mode.ToOutside, []mode.HopKind{mode.HopVeth, mode.HopBridge, mode.HopTap, mode.HopPasta,
			mode.HopWire}, []bool{true, true, false, false, false}},
		{mode.ToAddress, []mode.HopKind{mode.HopLoopback, mode.HopSlirp, mode.HopTap,
			mode.HopBridge,
			mode.HopVeth}, []bool{false, false, false, true, true}},
		{mode.ToAddress, []mode.HopKind{mode.HopBridge, mode.HopVeth}, []bool{false, false}},
	} {
		p := &Path{Spec: Spec{To: c.to}}
		for _, k := range c.hops {
			p.Hops = append(p.Hops, Hop{Kind: k})
		}
		p.MarkBehindTap()
		for i, h := range p.Hops {
			if h.BehindTap != c.want[i] {
				t.Errorf("to %s: %s is behind the tap: %t", c.to, h.Kind, h.BehindTap)
			}
		}
	}
}
