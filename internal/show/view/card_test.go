package view

import (
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

func twoCards() []sample.Card {
	node := 1
	return []sample.Card{
		{Name: "enp3s0f1np1", Where: "node rack-7-database", Under: "bond0", Driver: "mlx5_core",
			Version: "6.1.0-18-amd64", Firmware: "22.31.1014 (MT_0000000359)",
			Bus:          "0000:03:00.1",
			Device:       true,
			NUMA:         &node,
			MTU:          9000,
			Speed:        10e9,
			MaxSpeed:     25e9,
			PartnerSpeed: 10e9,
			Duplex:       sample.FullDuplex,
			Autoneg:      true,
			Offloads: map[string]bool{"tso": true, "gro": true, "gso": true, "lro": false,
				"hw-gro": false, "rx-checksum": true, "tx-checksum": true, "scatter": true},
			Sizes: &sample.OffloadSizes{GSO: 65536, GRO: 65536},
			Queues: &sample.CardQueues{Combined: 8, MostCombined: 63, ReceiveRing: 1024,
				SendRing: 1024, MostRxRing: 8192, MostTxRing: 8192},
			Interrupts: []sample.Interrupt{{Number: 120, Name: "mlx5_comp0@pci:0000:03:00.1",
				CPUs: "0"}, {Number: 121, Name: "mlx5_comp1@pci:0000:03:00.1", CPUs: "8-15"},
				{Number: 122, Name: "mlx5_async"}},
			XPS: map[string]string{"tx-0": "00000000,00000001",
				"tx-1": "00000000,0000ff00"}},
		{Name: "eth0", Where: "this machine", Driver: "virtio_net", MTU: 1500, Device: true},
	}
}

func TestPathCards(t *testing.T) {
	tr := witnessed()
	tr.Cards = twoCards()
	tr.Path.Links[1].Qdisc, tr.Path.Links[1].Rate = "tbf", 250e6
	tr.Visit.Client.TCP = sample.TCPInfo{MSS: 1398, Packet: 1450, Headers: 52, PMTU: 1450,
		Device: "eth0", DeviceMTU: 1500}
	got := path(t, tr, format.Options{Width: format.DefaultWidth})
	golden(t, "path-cards.txt", got)
	fits(t, got)
}

func TestManyInterrupts(t *testing.T) {
	c := twoCards()[0]
	for range mostInterrupts {
		c.Interrupts = append(c.Interrupts, sample.Interrupt{Number: 200, CPUs: "3"})
	}
	if got := cardInterrupts(c); got != "18 interrupts, to CPUs 0 8-15 3" {
		t.Error(got)
	}
}

func TestDetailsOfAFullCard(t *testing.T) {
	c := analysis.Cell{Cell: sample.Cell{Mode: "routed", From: "remote", To: "container",
		Load: "bulk", On: "swarm"},
		Witnessed: true, LimitedBy: "card", Primary: "throughput",
		Metrics: map[string]analysis.Metric{
			"throughput": {Unit: "bit/s", Higher: true, Median: 9.4e9, Low: 9.4e9, High: 9.4e9}},
		Capacity: &analysis.Capacity{Limit: "card", Device: "eth0", Where: "node a", Rate: 10e9,
			Payload: 1448, Frame: 1538, Goodput: 9.415e9, Share: 0.998},
		Segments: []analysis.Segments{{End: "client", Payload: 1448, Packet: 1500, Device: "eth0",
			MTU: 1500}},
		Cards: []sample.CardName{twoCards()[1].ID()}}
	r := &analysis.Report{Measured: analysis.Measured{
		Environment: sample.Environment{Cards: twoCards()},
		Plan:        analysis.Plan{Loads: []sample.Load{{Kind: "bulk", Streams: 1}}},
		Cells:       []analysis.Cell{c}}}
	b := written(t, "table", Details(r, PartRow{Cells: []analysis.Cell{c}}),
		format.Options{Width: format.DefaultWidth})
	for _, want := range []string{"  9.40 Gbit/s · limited by the 10 Gbit/s card eth0 of node a",
		"  segments of 1448 bytes in packets of 1500 (the client's eth0 has MTU 1500)",
		"    100 % of what the 10 Gbit/s card eth0 of node a carries: 10 Gbit/s × 1448 of " +
			"1538 bytes =",
		"      9.41 Gbit/s", "  eth0 of this machine · driver virtio_net · speed not known · " +
			"MTU 1500"} {
		if !testgolden.HasLine(b, want) {
			t.Errorf("no line %q in %q", want, b)
		}
	}
	if strings.Contains(b, "rack-7") {
		t.Error("it has a card that the row's packets do not cross")
	}
}
