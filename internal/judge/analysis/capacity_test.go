package analysis_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/judgetest"
)

func overWire(t *testing.T, m mode.Name, to mode.Target, cards ...sample.Card) *judgetest.Run {
	t.Helper()
	base := judgetest.Cell(mode.Native, mode.FromRemote, mode.ToAddress, workload.Bulk)
	r := judgetest.New(t, base, judgetest.Control(base),
		judgetest.Cell(m, mode.FromRemote, to, workload.Bulk))
	r.File.Header.Plan.Baseline = string(mode.Native)
	r.File.Header.Environment.Cards = cards
	for i := range r.File.Header.Paths {
		for _, c := range cards {
			if c.Under == "" {
				r.File.Header.Paths[i].Cards = append(r.File.Header.Paths[i].Cards, c.ID())
			}
		}
	}
	return r
}

func ethernet(where string, speed uint64) sample.Card {
	return sample.Card{Name: "eth0", Where: where, Driver: "ixgbe", Device: true, Speed: speed,
		MaxSpeed: speed, Duplex: sample.FullDuplex, MTU: 1500}
}

func segments(mss, headers int64) func(*sample.Visit) {
	return func(v *sample.Visit) {
		calm(v)
		// truncated mean
		v.Client.TCP = sample.TCPInfo{MSS: mss - mss%16, Packet: mss + headers, Headers: headers,
			PMTU: mss + headers}
	}
}

func TestCapacity(t *testing.T) {
	ten := ethernet("node a", 10e9)
	virtual := func(driver string, speed uint64) sample.Card {
		return sample.Card{Name: "eth0", Where: "node a", Driver: driver, Device: true,
			Speed: speed}
	}
	bond := []sample.Card{{Name: "bond0", Where: "node a", Driver: "bonding", Speed: 20e9},
		{Name: "eth0", Where: "node a", Under: "bond0", Driver: "ixgbe", Device: true, Speed: 10e9},
		{Name: "eth1", Where: "node a", Under: "bond0", Driver: "ixgbe", Device: true, Speed: 10e9}}
	virtualBond := slices.Clone(bond)
	virtualBond[2].Driver = "vmxnet3"
	for _, tt := range []struct {
		name     string
		cards    []sample.Card
		links    []sample.Link
		hops     []string
		mss      int64
		headers  int64
		gbit     float64
		want     string
		payload  int
		frame    int
		goodput  float64 // Gbit/s
		capacity bool
	}{
		{"10G-at-line-rate", []sample.Card{ten}, nil, nil, 1448, 52, 9.41, "card", 1448, 1538,
			9.415, true},
		{"10G-nearly", []sample.Card{ten}, nil, nil, 1448, 52, 8.7, "card", 1448, 1538, 9.415,
			true},
		{"10G-not-full", []sample.Card{ten}, nil, nil, 1448, 52, 8.6, "", 1448, 1538, 9.415, true},
		{"more-than-it-says-it-has", []sample.Card{ten}, nil, nil, 1448, 52, 9.8, "", 1448, 1538,
			9.415, true},
		{"jumbo-frames", []sample.Card{ten}, nil, nil, 8948, 52, 9.9, "card", 8948, 9038, 9.900,
			true},
		{"IPv6-without-timestamps", []sample.Card{ten}, nil, nil, 1440, 60, 9.3, "card", 1440, 1538,
			9.363, true},
		{"a-tunnel's-headers", []sample.Card{ten}, nil, []string{"vxlan"}, 1398, 52, 9.0, "card",
			1398, 1538, 9.090, true},
		{"a-tunnel-of-an-old-file", []sample.Card{ten}, nil, []string{"vxlan"}, 0, 0, 9.0, "card",
			1398, 1538, 9.090, true},
		{"the-slower-of-two", []sample.Card{ten, ethernet("node b", 1e9)}, nil, nil, 1448, 52, 0.94,
			"card", 1448, 1538, 0.9415, true},
		{"virtio-without-a-speed", []sample.Card{virtual("virtio_net", 0)}, nil, nil, 1448, 52, 9.4,
			"", 0, 0, 0, false},
		{"a-made-up-speed", []sample.Card{virtual("vmxnet3", 10e9)}, nil, nil, 1448, 52, 9.4, "", 0,
			0, 0, false},
		{"a-veth's-speed", []sample.Card{{Name: "eth0", Where: "node a", Driver: "veth",
			Speed: 10e9}}, nil, nil, 1448, 52, 9.4, "", 0, 0, 0, false},
		{"a-bond-of-two", bond, nil, nil, 1448, 52, 18.8, "card", 1448, 1538, 18.83, true},
		{"a-bond-at-one-of-its-cards", bond, nil, nil, 1448, 52, 9.41, "", 1448, 1538, 18.83, true},
		{"a-bond-of-virtual-cards", virtualBond, nil, nil, 1448, 52, 18.8, "", 0, 0, 0, false},
		{"a-shaper", nil, []sample.Link{{Name: "eth0", Where: "node a", Kind: "device",
			Qdisc: "tbf", Rate: 1e9}}, nil, 1448, 52, 0.95, "shaper", 1448, 1514, 0.9564, true},
		{"a-shaper-below-the-card", []sample.Card{ten},
			[]sample.Link{{Name: "eth0", Where: "node a", Qdisc: "htb", Rate: 1e9}}, nil, 1448, 52,
			0.95, "shaper", 1448, 1514, 0.9564, true},
		{"a-shaped-loopback-device-beside-the-path", nil,
			[]sample.Link{{Name: "lo", Kind: "loopback", Qdisc: "tbf", Rate: 1e9}}, nil, 1448, 52,
			0.95, "", 0, 0, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := overWire(t, mode.Routed, mode.ToContainer, tt.cards...)
			for i := range r.File.Header.Paths {
				p := &r.File.Header.Paths[i]
				p.Links, p.Hops = tt.links, append(p.Hops, tt.hops...)
			}
			report := analysis.Judge(r.Rounds(6, judgetest.Steady(tt.gbit, tt.gbit, tt.gbit),
				segments(tt.mss, tt.headers)).File)
			c := judgetest.Find(t, report, mode.Routed, workload.Bulk)
			if c.LimitedBy != tt.want || (c.Capacity != nil) != tt.capacity {
				t.Fatalf("limited by %q, of %+v", c.LimitedBy, c.Capacity)
			}
			if x := c.Capacity; x != nil && (x.Payload != tt.payload || x.Frame != tt.frame ||
				!judgetest.Near(x.Goodput, tt.goodput*1e9) ||
				!judgetest.Near(x.Share, tt.gbit/tt.goodput)) {
				t.Errorf("capacity %+v", x)
			}
		})
	}
}

func TestCapacityOfLoads(t *testing.T) {
	for _, tt := range []struct {
		name     string
		load     sample.Load
		out      float64
		back     float64
		want     string
		pay, frm int
	}{
		{"both-ways", sample.Load{Kind: workload.Bulk, Options: sample.BulkOptions{Bidir: true}},
			9.41, 6, "card", 1448, 1538},
		{"both-ways-half-full", sample.Load{Kind: workload.Bulk,
			Options: sample.BulkOptions{Bidir: true}}, 5, 4.4, "", 1448, 1538},
		{"back", sample.Load{Kind: workload.BulkReverse,
			Options: sample.BulkOptions{Reverse: true}}, 0, 9.41, "card", 1448, 1538},
		{"datagrams", sample.Load{Kind: workload.UDP, Options: sample.UDPOptions{Size: 1400}}, 9.5,
			0, "card", 1400, 1466},
		{"fragments", sample.Load{Kind: workload.UDP, Options: sample.UDPOptions{Size: 8000}}, 9.5,
			0, "card", 8000, 8008 + 6*(20+38)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := overWire(t, mode.Routed, mode.ToContainer, ethernet("node a", 10e9))
			tt.load.Streams = 1
			r.File.Header.Plan.Loads = []sample.Load{tt.load}
			for i := range r.File.Header.Plan.Cells {
				r.File.Header.Plan.Cells[i].Load = tt.load.Kind
			}
			for i := range r.File.Header.Paths {
				r.File.Header.Paths[i].UDP = tt.load.Kind == workload.UDP
			}
			report := analysis.Judge(r.Rounds(6, judgetest.Steady(0, 0, 0), segments(1448, 52),
				func(v *sample.Visit) {
					v.Server.Received, v.Client.Received = int64(tt.out*1e9/8), int64(tt.back*1e9/8)
				}).File)
			c := judgetest.Find(t, report, mode.Routed, tt.load.Kind)
			if x := c.Capacity; c.LimitedBy != tt.want || x == nil || x.Payload != tt.pay ||
				x.Frame != tt.frm {
				t.Errorf("limited by %q, of %+v", c.LimitedBy, x)
			}
		})
	}
}

func TestFullWarnings(t *testing.T) {
	for _, tt := range []struct {
		name string
		base float64
		mode float64
		want string
	}{
		{"both", 9.41, 9.41, analysis.Full},
		{"the-baseline", 9.41, 5, analysis.Capped},
		{"neither", 5, 4, ""},
		{"the-mode", 8, 9.41, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := overWire(t, mode.Routed, mode.ToContainer, ethernet("node a", 10e9))
			report := analysis.Judge(r.Rounds(6, judgetest.Steady(tt.base, tt.base, tt.mode),
				segments(1448, 52)).File)
			c := judgetest.Find(t, report, mode.Routed, workload.Bulk)
			if tt.want == "" {
				if len(c.Warnings) > 0 {
					t.Errorf("warnings %v", c.Warnings)
				}
				return
			}
			f := judgetest.Found(t, c.Warnings, tt.want)
			if len(c.Warnings) != 1 || f.What != "native" ||
				f.Limit.Words() != "the 10 Gbit/s card eth0 of node a" ||
				f.Limit.Payload != 1448 || f.Limit.Frame != 1538 {
				t.Errorf("warnings %v, %+v", c.Warnings, f.Limit)
			}
			if got := judgetest.Find(t, report, mode.Native, workload.Bulk); len(got.Warnings) > 0 || got.LimitedBy != "card" {
				t.Errorf("the baseline is limited by %q, warnings %v", got.LimitedBy, got.Warnings)
			}
			if tt.want == analysis.Full && (!c.FillsLink() ||
				c.Metrics[c.Primary].Ratio.Verdict != stats.Same ||
				c.Link() != "the 10 Gbit/s card eth0 of node a") {
				t.Errorf("it fills %q, ratio %v", c.Link(), c.Metrics[c.Primary].Ratio)
			}
		})
	}
}

func TestCardWarnings(t *testing.T) {
	half := analysis.Finding{Code: analysis.HalfDuplex, What: "eth0", Why: "node a"}
	slow := func(speed float64) analysis.Finding {
		return analysis.Finding{Code: analysis.SlowLink, What: "eth0", Why: "node a",
			Values: map[string]float64{analysis.SlowLink: speed, analysis.CardMost: 1e9}}
	}
	partner := slow(100e6)
	partner.Values[analysis.CardPartner] = 100e6
	for _, tt := range []struct {
		name   string
		change func(*sample.Card)
		want   []analysis.Finding
	}{
		{"as-it-should-be", func(*sample.Card) {}, nil},
		{"half-duplex", func(c *sample.Card) {
			c.Duplex = sample.HalfDuplex
		}, []analysis.Finding{half}},
		{"slow-link", func(c *sample.Card) {
			c.Speed = 100e6
		}, []analysis.Finding{slow(100e6)}},
		{"slow-partner", func(c *sample.Card) {
			c.Speed, c.PartnerSpeed = 100e6, 100e6
		}, []analysis.Finding{partner}},
		{"both", func(c *sample.Card) {
			c.Speed, c.Duplex = 10e6, sample.HalfDuplex
		}, []analysis.Finding{half, slow(10e6)}},
		{"a-made-up-link", func(c *sample.Card) {
			c.Driver, c.Speed = "virtio_net", 100e6
		}, nil},
		{"modes-not-known", func(c *sample.Card) { c.MaxSpeed = 0 }, nil},
		{"no-link", func(c *sample.Card) { c.Speed, c.Duplex = 0, "" }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := ethernet("node a", 1e9)
			tt.change(&c)
			r := overWire(t, mode.Routed, mode.ToContainer, c)
			report := analysis.Judge(r.Rounds(6, judgetest.Steady(0.05, 0.05, 0.05), calm).File)
			var got []analysis.Finding
			for _, w := range report.Warnings {
				got = append(got, *w.Found)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestPathMTU(t *testing.T) {
	at := func(mss, headers, pmtu int64, device string, mtu int64) sample.TCPInfo {
		return sample.TCPInfo{MSS: mss - mss%16, Packet: mss + headers, Headers: headers,
			PMTU: pmtu, Device: device, DeviceMTU: mtu}
	}
	whole := at(1448, 52, 1500, "eth0", 1500)
	// found is about an eth0 with an MTU of 1500; other is that of the other end, if it is smaller.
	found := func(end string, payload, other float64) *analysis.Finding {
		f := &analysis.Finding{Code: analysis.PathMTU, What: end, On: "eth0",
			Values: map[string]float64{analysis.PathMTU: 1500, analysis.SegmentPayload: payload,
				analysis.SegmentPacket: payload + 52}}
		if other > 0 {
			f.Why, f.Values[analysis.OtherMTU] = "eth0", other
		}
		return f
	}
	const tuned = "routed+rmem=4k"
	for _, tt := range []struct {
		name           string
		client, server sample.TCPInfo
		mode           mode.Name
		want           *analysis.Finding
	}{
		{"as-its-ends", whole, whole, mode.Routed, nil},
		{"an-old-file", sample.TCPInfo{MSS: 1398}, sample.TCPInfo{MSS: 1398}, mode.Routed, nil},
		{"smaller-between", at(1398, 52, 1450, "eth0", 1500), at(1398, 52, 1450, "ens1", 1500),
			mode.Routed, found("client", 1398, 0)},
		{"the-server's-is-smaller", at(1398, 52, 1500, "eth0", 1500),
			at(1398, 52, 1450, "eth0", 1450), mode.Routed, found("client", 1398, 1450)},
		{"the-client's-is-smaller", at(1398, 52, 1450, "eth0", 1450),
			at(1398, 52, 1500, "eth0", 1500), mode.Routed, found("server", 1398, 1450)},
		{"beyond-a-proxy-is-another-path", at(1398, 52, 1450, "eth0", 1500),
			at(1398, 52, 1450, "eth0", 1450), mode.PublishProxy, found("client", 1398, 0)},
		{"an-overlay-has-its-own", at(1398, 52, 1450, "eth0", 1450),
			at(1398, 52, 1450, "eth0", 1450), mode.Routed, nil},
		{"clamped", at(1360, 52, 1500, "eth0", 1500), whole, mode.Routed, found("client", 1360, 0)},
		{"loopback", at(32741, 52, 65535, "lo", 65536), at(65483, 52, 65535, "lo", 65536),
			mode.Routed, nil},
		{"loopback-to-a-container", at(1448, 52, 65535, "lo", 65536), whole, mode.Routed, nil},
		{"past-docker-proxy", at(1448, 52, 1500, "lo", 65536), whole, mode.Routed, nil},
		{"without-a-device", at(1398, 52, 1450, "", 0), at(1398, 52, 1450, "", 0), mode.Routed,
			nil},
		{"small-windows", at(1148, 52, 1500, "eth0", 1500), whole, tuned, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base := judgetest.Cell(mode.Native, mode.FromRemote, mode.ToAddress, workload.Bulk)
			tune := mode.Tunes("")
			if tt.mode == tuned {
				tt.mode, tune = mode.Routed, "rmem=4k"
			}
			m, _ := mode.Find(tt.mode)
			cell := judgetest.Cell(tt.mode, mode.FromRemote, m.RoutesFrom(mode.FromRemote)[0].To,
				workload.Bulk)
			cell.Tune = tune
			r := judgetest.New(t, base, judgetest.Control(base), cell).Rounds(
				6, judgetest.Steady(5, 5, 5), calm, func(v *sample.Visit) {
					if v.Cell == 2 {
						v.Client.TCP, v.Server.TCP = tt.client, tt.server
					}
				})
			c := judgetest.Find(t, analysis.Judge(r.File), tt.mode, workload.Bulk)
			if tt.want == nil {
				if len(c.Warnings) > 0 {
					t.Errorf("warnings %v", c.Warnings)
				}
				return
			}
			if got := judgetest.Found(t, c.Warnings, analysis.PathMTU); len(c.Warnings) != 1 ||
				!reflect.DeepEqual(got, *tt.want) {
				t.Errorf("got %+v, want %+v", got, *tt.want)
			}
		})
	}
}

func TestCapacityOfNonsense(t *testing.T) {
	for _, mtu := range []int{1, 20, 40, 52, 72} {
		r := overWire(t, mode.Routed, mode.ToContainer, ethernet("node a", 10e9))
		r.File.Header.Plan.Wire = &sample.Wire{Rate: 1e9, MTU: mtu}
		udp := sample.Load{Kind: workload.UDP, Streams: 1,
			Options: sample.UDPOptions{Size: 1 << 62}}
		r.File.Header.Plan.Loads = append(r.File.Header.Plan.Loads, udp)
		for i := range r.File.Header.Plan.Cells[1:] {
			r.File.Header.Plan.Cells[1+i].Load = udp.Kind
		}
		for i := range r.File.Header.Paths[1:] {
			r.File.Header.Paths[1+i].UDP = true
		}
		for _, c := range analysis.Judge(r.Rounds(2, judgetest.Steady(1, 1, 1)).File).Cells {
			if x := c.Capacity; x != nil && !(x.Goodput > 0 && x.Share > 0) {
				t.Errorf("at an MTU of %d: %+v", mtu, x)
			}
		}
	}
}
