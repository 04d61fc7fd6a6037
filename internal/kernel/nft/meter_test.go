package nft

import (
	"io"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
)

func TestMeter(t *testing.T) {
	netnstest.Do(t, func() error {
		cmd := exec.Command("sh", "-ec", "ip link set lo up; nft -f -")
		cmd.Stdin = strings.NewReader(`table ip nat {
	chain out { type nat hook output priority -100
		tcp dport { 8100, 8101 } meta mark set 0x2000 dnat to 127.0.0.1:7000
	}
	chain post { type nat hook postrouting priority 100
		meta mark & 0x2000 == 0x2000 snat to 127.0.0.5
	}
}`)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("%v: %s", err, out)
		}
		server := netip.MustParseAddrPort("127.0.0.1:7000")
		l, err := net.Listen("tcp", server.String())
		if err != nil {
			return err
		}
		defer l.Close()
		go testnet.Accept(l, func(c net.Conn) { _, _ = io.Copy(c, c) })
		at := Dst(netip.PrefixFrom(server.Addr(), 32))
		dialled := netip.MustParseAddrPort("127.0.0.1:8100")
		m, err := NewMeter(IPv4, "toll-meter", [][]Match{
			{Dialled(dialled), at, TCPDport(server.Port())},
			{Marked(0x2000), at},
			{Rewritten(), at},
			{at, TCPDport(server.Port())}})
		if err != nil {
			return err
		}
		for address, n := range map[string]int{"127.0.0.1:8100": 3, "127.0.0.1:8101": 2,
			"127.0.0.1:7000": 1} {
			for range n {
				c, err := net.Dial("tcp", address)
				if err != nil {
					return err
				}
				if _, err := c.Write([]byte("hello")); err != nil {
					return err
				}
				if _, err := io.ReadFull(c, make([]byte, 5)); err != nil {
					return err
				}
				c.Close()
			}
		}
		got, err := m.Counts()
		if want := []uint64{3, 5, 5, 6}; !slices.Equal(got, want) || err != nil {
			t.Errorf("%d, %v; want %d", got, err, want)
		}
		// another program can neither change nor keep the table
		if out, err := exec.Command("nft", "flush", "table", "ip", "toll-meter").CombinedOutput(); err == nil {
			t.Errorf("flushed by another: %s", out)
		}
		if err := m.Close(); err != nil {
			return err
		}
		out, err := exec.Command("nft", "list", "tables").CombinedOutput()
		if err != nil || string(out) != "table ip nat\n" {
			t.Errorf("left: %s %v", out, err)
		}
		return nil
	})
}
