package shortcut

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// While over half of the server's accept queue is taken, docker-proxy gets the clients.
func TestQueueOfServer(t *testing.T) {
	m := newMachine(t)
	server, err := m.box.TID()
	if err != nil {
		t.Fatal(err)
	}
	const queue, half = 5, 3
	var asked uint64
	for _, c := range families {
		t.Run(c.name, func(t *testing.T) {
			dial, target := netip.MustParseAddrPort(c.dial), netip.MustParseAddrPort(c.target)
			full := m.listenOnly(t, target, queue)
			defer unix.Close(full)
			proxy := m.proxy(t, c.dial)
			if err := m.host.Do(func() error {
				return m.table.Add(Entry{Dial: dial, Target: target, Server: server}, proxy)
			}); err != nil {
				t.Fatal(err)
			}
			for n := range uint32(half) {
				m.wantTaken(t, dial, uint64(n))
				m.begin(t, dial, 1)
				testwait.Until(t, time.Minute, "a client waits in the queue", func() bool {
					i, err := unix.GetsockoptTCPInfo(full, unix.IPPROTO_TCP, unix.TCP_INFO)
					return err == nil && i.Unacked == n+1
				})
			}
			for range 2 * queue {
				if got := m.ask(c.dial); got != "proxy" {
					t.Fatalf("%s answered", got)
				}
				asked++
			}
			m.wantTaken(t, dial, half)
			m.wantLeft(t, "the server accepts too slowly: its queue is more than half full", asked)
			fd, _, err := unix.Accept(full)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			m.begin(t, dial, 1)
			m.wantTaken(t, dial, half+1)
		})
	}
}

func (m *testMachine) wantTaken(t *testing.T, dial netip.AddrPort, want uint64) {
	t.Helper()
	all, err := m.table.Entries()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(e Entry) bool { return e.Dial == dial })
	if i < 0 {
		t.Fatalf("no shortcut of %s", dial)
	}
	if got := all[i].Taken; got != want {
		t.Errorf("%d took the shortcut of %s, want %d", got, dial, want)
	}
}
