package view

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

func counters(fb, fp, bb, bp uint64) sample.Counters {
	return sample.Counters{ForwardBytes: fb, ForwardPackets: fp, BackwardBytes: bb,
		BackwardPackets: bp}
}

// One hop counts both directions together, one has no packets, two have everything, and the guards
// are quiet.
func witnessed() *Trace {
	return &Trace{
		Path: sample.Path{Mode: "publish-proxy", From: "host", To: "loopback", On: "lab",
			Dial: "127.0.0.1:8080", Listen: "0.0.0.0:5201",
			Hops: []string{"lo", "proxy", "bridge", "veth"}, Built: 0.0404,
			Facts: map[string]string{"rules": "Docker Engine 28.5.2", "proxy": "docker-proxy"},
			Links: []sample.Link{
				{Name: "lo", Kind: "loopback", Where: "machine A", MTU: 65536, Qdisc: "noqueue",
					Offloads: map[string]bool{"gro": true, "tso": true}},
				{Name: "eth0", Kind: "veth", Where: "server container", MTU: 1500,
					Offloads: map[string]bool{"gro": false}},
			}},
		Visit: sample.Visit{
			Ends: sample.Ends{Client: sample.Party{
				Sent: 1000 * 2000, Trips: 2000, TotalSent: 2052000, TotalRecv: 2052000,
				Connections: 1}, Server: sample.Party{TotalRecv: 2052000}},
			Proof: sample.Proof{Hops: []sample.HopReading{
				{Kind: "lo", Name: "lo", Where: "machine A", After: counters(4317788, 4111, 0, 0)},
				{Kind: "proxy", Name: "docker-proxy", Where: "machine A, process 16350",
					After: counters(2052001, 0, 2052000, 0)},
				{Kind: "bridge", Name: "br-toll", Where: "machine A",
					Before: counters(274, 3, 76, 1), After: counters(2188020, 2060, 2158920, 2056)},
				{Kind: "veth", Name: "veth-server⇄eth0", Where: "server container",
					Before: counters(364, 4, 90, 1), After: counters(2188110, 2061, 2187704, 2056)},
				{Kind: "DNAT", Name: "nat DOCKER publish", Where: "machine A"},
				{Kind: "wire", Name: "eth0", Where: "machine A", Before: counters(516, 6, 0, 0),
					After: counters(606, 7, 0, 0)},
				{Kind: "lo", Name: "lo", Where: "machine B"},
			}, Witness: sample.Witness{OK: true}},
		},
	}
}

// The port should have been published by NAT but was reached through a proxy.
func unwitnessed() *Trace {
	return &Trace{
		Path: sample.Path{Mode: "publish-nat", From: "host", To: "loopback", On: "lab",
			Dial: "127.0.0.1:8080", Listen: "0.0.0.0:5201",
			Hops: []string{"DNAT", "MASQ", "veth"}, Built: 1.2},
		Visit: sample.Visit{
			Ends: sample.Ends{Client: sample.Party{
				Sent: 1000, Trips: 1, TotalSent: 1000, TotalRecv: 1000, Connections: 1},
				Server: sample.Party{TotalRecv: 1000}},
			Proof: sample.Proof{Hops: []sample.HopReading{
				{Kind: "DNAT", Name: "nat DOCKER publish", Where: "machine A"},
				{Kind: "MASQ", Name: "nat POSTROUTING masq", Where: "machine A",
					Before: sample.Counters{Hits: 2}, After: sample.Counters{Hits: 3}},
				{Kind: "veth", Name: "veth-server⇄eth0", Where: "server container",
					After: counters(1500, 8, 1400, 7)},
				{Kind: "lo", Name: "lo", Where: "machine A", After: counters(1234567, 99, 0, 0)},
			},
				Witness: sample.Witness{
					Evidence: "DNAT nat DOCKER publish (machine A): hit 0 times by 1 " +
						"connection; " +
						"lo lo (machine A): counted 1234567 bytes, the path must not use it"}},
		},
	}
}

func path(t *testing.T, tr *Trace, o format.Options) string {
	t.Helper()
	b := written(t, "table", Path(tr), o)
	if !o.Color {
		whole(t, Path(tr), b)
	}
	return b
}

func TestPath(t *testing.T) {
	for _, tt := range []struct {
		name  string
		trace *Trace
	}{{"path-witnessed", witnessed()}, {"path-unwitnessed", unwitnessed()}} {
		t.Run(tt.name, func(t *testing.T) {
			got := path(t, tt.trace, format.Options{Width: format.DefaultWidth})
			golden(t, tt.name+".txt", got)
			fits(t, got)
			if got != path(t, tt.trace, format.Options{}) {
				t.Errorf("without a width the path is not %d columns wide", format.DefaultWidth)
			}
		})
	}
	t.Run("color", func(t *testing.T) {
		got := path(t, unwitnessed(), format.Options{Color: true})
		if plain := path(t, unwitnessed(), format.Options{}); got == plain || uncolored(got) != plain {
			t.Errorf("colour changes more or less than colour:\n%s", got)
		}
	})
}

func TestPathIncomplete(t *testing.T) {
	tr := witnessed()
	tr.Visit = sample.Visit{Proof: sample.Proof{
		Hops: tr.Visit.Hops[:1], Witness: sample.Witness{Evidence: "the load moved no byte"}}}
	got := path(t, tr, format.Options{})
	for _, want := range []string{"  client  connects to 127.0.0.1:8080",
		"  lo      lo  (machine A)", "  server  listens on 0.0.0.0:5201",
		"  Not witnessed: the load moved no byte"} {
		if !testgolden.HasLine(got, want) {
			t.Errorf("no line %q in %q", want, got)
		}
	}
}
