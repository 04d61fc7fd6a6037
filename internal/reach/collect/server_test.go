package collect

import (
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

const servesAt = "SERVES_AT"

// TestServesAt is the server of TestServerAt. It accepts no connection: they wait in its queue.
func TestServesAt(t *testing.T) {
	at := os.Getenv(servesAt)
	if at == "" {
		t.Skip("not started by TestServerAt")
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends
}

func TestServerAt(t *testing.T) {
	client, server, stranger := netnstest.New(t), netnstest.New(t), netnstest.New(t)
	tid, err := server.TID()
	if err != nil {
		t.Fatal(err)
	}
	do(t, client, func() error { return link.AddVeth("eth0", "eth0", tid) })
	for ns, addr := range map[*netns.NS]string{client: "192.0.2.1/24", server: "192.0.2.2/24"} {
		do(t, ns, func() error {
			if err := link.AddAddr("eth0", netip.MustParsePrefix(addr)); err != nil {
				return err
			}
			return link.Up("eth0")
		})
	}
	at := netip.MustParseAddrPort("192.0.2.2:4711")
	var pids []int
	// The stranger's server has the same address, but no link to the client.
	for _, ns := range []*netns.NS{stranger, server} {
		if ns == stranger {
			do(t, ns, func() error {
				if err := link.Up("lo"); err != nil {
					return err
				}
				return link.AddAddr("lo", netip.PrefixFrom(at.Addr(), 32))
			})
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestServesAt$")
		cmd.Env = append(os.Environ(), servesAt+"="+at.String())
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := ns.Start(cmd); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
		pids = append(pids, cmd.Process.Pid)
	}
	testwait.Until(t, time.Minute, "the server is found", func() bool {
		got := 0
		do(t, client, func() error {
			got = ServerAt(t.Context(), at, vantage.Local())
			return nil
		})
		if got == pids[0] {
			t.Fatal("the stranger's server is taken for the one that was dialled")
		}
		return got == pids[1]
	})
	do(t, client, func() error {
		closed := netip.AddrPortFrom(at.Addr(), at.Port()+1)
		if got := ServerAt(t.Context(), closed, vantage.Local()); got != 0 {
			t.Errorf("nobody listens, and process %d is found", got)
		}
		return nil
	})
}

func do(t *testing.T, ns *netns.NS, f func() error) {
	t.Helper()
	if err := ns.Do(f); err != nil {
		t.Fatal(err)
	}
}

func TestNamesProcessesThatRootMayNotRead(t *testing.T) {
	one := ports.Process{PID: 1, Name: "init"}
	for want, all := range map[string][]ports.Process{
		"init (PID 1)":                     {one},
		"init (PID 1) and 1 other process": {one, {PID: 2}},
	} {
		if got := some(all); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
