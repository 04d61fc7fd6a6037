package pathtest

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// relayOf returns the path's first hop that is a process.
func relayOf(t *testing.T, p *path.Path) path.Hop {
	t.Helper()
	i := slices.IndexFunc(p.Hops, func(h path.Hop) bool {
		return strings.Contains(h.Where, ", process ")
	})
	if i < 0 {
		t.Fatalf("no process among %+v", p.Hops)
	}
	return p.Hops[i]
}

// ForeignDatagrams checks that a path over UDP is not witnessed if its first process relays twice
// as many datagrams as the load reports.
func ForeignDatagrams(t *testing.T, p *path.Path) {
	t.Helper()
	w, readings := witnessed(t, p, func() (tr Traffic) {
		for range 2 {
			tr = Exchange(t, p)
			tr.Stop()
		}
		tr.Stop = nil
		return tr
	})
	if name := relayOf(t, p).Name; w.OK || !strings.Contains(w.Evidence, name) {
		t.Errorf("witnessed twice the datagrams: %+v\n%v", w, readings)
	}
}

// Space is a network namespace.
type Space interface{ Do(f func() error) error }

// StandIn checks that a path is not witnessed if another process, in place of the path's first one,
// relays datagrams from the clients' network to a target.
func StandIn(t *testing.T, p *path.Path, from, to Space, target netip.AddrPort) {
	t.Helper()
	const port = 9090
	hops := slices.Concat(p.Hops, p.Guards)
	before, err := path.ReadAll(hops)
	if err != nil {
		t.Fatal(err)
	}
	at := netip.AddrPortFrom(p.Clients[0].Dial.Addr(), port)
	standIn(t, from, to, at, target)
	tr := ExchangeAt(t, p, at)
	defer tr.Stop()
	after, err := path.ReadAll(hops)
	if err != nil && strings.Contains(err.Error(), "another process than") {
		return
	}
	w := path.Witness(hops, before, after, tr.Moved...)
	if err != nil || w.OK || !strings.Contains(w.Evidence, relayOf(t, p).Name) {
		t.Errorf("witnessed what another process relayed: %+v, %v", w, err)
	}
}

// standIn relays one client's datagrams until the test's end.
func standIn(t *testing.T, from, to Space, listen, target netip.AddrPort) {
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
			_, _ = back.Write(b[:n]) // the client resends a lost datagram
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

// RelayEnds kills the path's relay and checks that its hop then cannot be read.
func RelayEnds(t *testing.T, p *path.Path) {
	t.Helper()
	if err := unix.Kill(p.Proxies[0].PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, time.Minute, "the counters of a relay that ended are not read", func() bool {
		_, err := relayOf(t, p).Read()
		return err != nil
	})
}
