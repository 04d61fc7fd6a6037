package lab

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testwait"
)

// relayedDatagrams has a route of each kind on which a process counts datagrams.
var relayedDatagrams = []path.Spec{
	{Mode: mode.Pasta, From: mode.FromHost, To: mode.ToLoopback, UDP: true},
	{Mode: mode.Pasta, From: mode.FromRemote, To: mode.ToAddress, UDP: true},
	{Mode: mode.Slirp4netns, From: mode.FromHost, To: mode.ToAddress, UDP: true},
	{Mode: mode.Slirp4netns, From: mode.FromContainer, To: mode.ToOutside, UDP: true},
	{Mode: mode.GvisorTapVsock, From: mode.FromHost, To: mode.ToLoopback, UDP: true},
	{Mode: mode.GvisorTapVsock, From: mode.FromContainer, To: mode.ToOutside, UDP: true},
	{Mode: mode.RootlessPort, From: mode.FromHost, To: mode.ToLoopback, UDP: true},
	{Mode: mode.RootlessPublishNAT, From: mode.FromHost, To: mode.ToLoopback, UDP: true},
}

func hopsOf(p *path.Path) []path.Hop { return append(append([]path.Hop{}, p.Hops...), p.Guards...) }

func read(t *testing.T, hops []path.Hop) []sample.Counters {
	t.Helper()
	c, err := path.ReadAll(hops)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestForeignDatagrams(t *testing.T) {
	l := started(t, &Lab{})
	for _, spec := range relayedDatagrams {
		t.Run(spec.String(), func(t *testing.T) {
			skipMissing(t, l, spec)
			p := build(t, l, spec)
			pathtest.Carries(t, p)
			hops := hopsOf(p)
			before := read(t, hops)
			for i := range 2 {
				tr := pathtest.Exchange(t, p)
				tr.Stop()
				if i == 1 { // twice what the load tells
					w := path.Witness(hops, before, read(t, hops), tr.Moved...)
					if w.OK || !strings.Contains(w.Evidence, relayOf(p).Name) {
						t.Errorf("witnessed twice the datagrams: %+v", w)
					}
				}
			}
		})
	}
}

// relayOf returns the path's first hop that is a process.
func relayOf(p *path.Path) path.Hop {
	for _, h := range p.Hops {
		if strings.Contains(h.Where, "process ") {
			return h
		}
	}
	return path.Hop{}
}

// A process with the same sockets as the relay's crosses the same devices.
func TestStandInForDatagrams(t *testing.T) {
	for _, m := range []mode.Name{mode.Pasta, mode.RootlessPort} {
		spec := path.Spec{Mode: m, From: mode.FromHost, To: mode.ToLoopback, UDP: true}
		t.Run(spec.String(), func(t *testing.T) {
			var s *site
			l := started(t, &Lab{test: hooks{built: func(b *site) { s = b }}})
			skipMissing(t, l, spec)
			p := build(t, l, spec)
			hops := hopsOf(p)
			before := read(t, hops)
			const port = 9090
			at := netip.AddrPortFrom(loopback, port)
			standIn(t, s.a.ns, s.Servers[0].ns, at, netip.AddrPortFrom(loopback, serverPort))
			tr := pathtest.ExchangeAt(t, p, at)
			defer tr.Stop()
			after, err := path.ReadAll(hops)
			if err != nil && strings.Contains(err.Error(), "another process than") {
				return
			}
			w := path.Witness(hops, before, after, tr.Moved...)
			if err != nil || w.OK || !strings.Contains(w.Evidence, relayOf(p).Name) {
				t.Errorf("witnessed what another process relayed: %+v, %v", w, err)
			}
		})
	}
}

// standIn relays one client's datagrams until the test's end.
func standIn(t *testing.T, from, to local.Space, listen, target netip.AddrPort) {
	t.Helper()
	var front, back *net.UDPConn
	if err := from.Do(func() (err error) {
		front, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(listen))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := to.Do(func() (err error) {
		back, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(target))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		front.Close()
		back.Close()
	})
	client := make(chan netip.AddrPort, 1)
	go func() {
		b := make([]byte, 64<<10)
		for {
			n, peer, err := front.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			select {
			case client <- peer:
			default:
			}
			_, _ = back.Write(b[:n]) // a lost one is sent again
		}
	}()
	go func() {
		b := make([]byte, 64<<10)
		for peer := (netip.AddrPort{}); ; {
			n, err := back.Read(b)
			if err != nil {
				return
			}
			if !peer.IsValid() {
				peer = <-client
			}
			_, _ = front.WriteToUDPAddrPort(b[:n], peer)
		}
	}()
}

func TestRelayEnds(t *testing.T) {
	l := started(t, &Lab{})
	for _, spec := range relayedDatagrams[:3] {
		t.Run(spec.String(), func(t *testing.T) {
			skipMissing(t, l, spec)
			p := build(t, l, spec)
			pathtest.Carries(t, p)
			if err := unix.Kill(p.Proxies[0].PID, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			const patience = time.Minute
			testwait.Until(t, patience, "the relay's counters cannot be read", func() bool {
				_, err := relayOf(p).Read()
				return err != nil
			})
		})
	}
}

// They time out, which Check says before.
func TestLostAnswers(t *testing.T) {
	l := started(t, &Lab{})
	for _, spec := range []path.Spec{
		{Mode: mode.Slirp4netns, From: mode.FromHost, To: mode.ToLoopback, UDP: true},
		{Mode: mode.Pasta, From: mode.FromHost, To: mode.ToAddress, UDP: true},
		{Mode: mode.Pasta, From: mode.FromHost, To: mode.ToAddress6, UDP: true},
	} {
		t.Run(spec.String(), func(t *testing.T) {
			t.Parallel()
			tcp := spec
			tcp.UDP = false
			skipMissing(t, l, tcp)
			refused := l.Check(t.Context(), spec)
			p, err := l.Build(t.Context(), spec)
			switch {
			case err == nil:
				err = p.Close()
				if refused != nil || err != nil {
					t.Errorf("refused by %v, and answered; close: %v", refused, err)
				}
			case refused == nil || !strings.Contains(err.Error(), "no answer within"):
				t.Errorf("refused by %v; %v", refused, err)
			}
		})
	}
}
