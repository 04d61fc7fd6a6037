package conntrack

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
)

var (
	self   = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	dialed = netip.AddrPortFrom(self, 8080)
	server = netip.AddrPortFrom(self, 80)
)

func translated(t *testing.T, f func() error) {
	t.Helper()
	ns := netnstest.New(t)
	err := ns.Do(func() error {
		rule := nft.Rule{Match: []nft.Match{nft.TCPDport(dialed.Port())}, Verdict: nft.DNAT(server)}
		return errors.Join(link.Up("lo"),
			nft.Apply([]nft.Chain{{Table: "nat", Name: "out", Hook: nft.Output,
				Rules: []nft.Rule{rule}}}))
	})
	if err == nil {
		err = ns.Do(f)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func connected(t *testing.T) (direct, through netip.AddrPort) {
	t.Helper()
	l, err := net.Listen("tcp4", server.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var from [2]netip.AddrPort
	for i, to := range []netip.AddrPort{server, dialed} {
		c, err := net.Dial("tcp4", to.String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		from[i] = c.LocalAddr().(*net.TCPAddr).AddrPort()
	}
	return from[0], from[1]
}

func TestTable(t *testing.T) {
	translated(t, func() error {
		if u, err := Read(); err != nil || u.Entries != 0 || u.Max <= 0 {
			t.Errorf("an empty table: %+v, %v", u, err)
		}
		direct, through := connected(t)
		if u, err := Read(); err != nil || u.Entries != 2 {
			t.Errorf("two connections: %+v, %v", u, err)
		}
		want := Flow{Proto: "tcp", From: self, Port: through.Port(), To: dialed, Now: server}
		udp, err := net.Dial("udp4", dialed.String())
		if err != nil {
			return err
		}
		defer udp.Close()
		if _, err := udp.Write([]byte("x")); err != nil {
			return err
		}
		from := udp.LocalAddr().(*net.UDPAddr).AddrPort().Port()
		for _, picked := range []bool{false, true} {
			got, err := Flows(func(f Flow) bool { return picked && f.To == dialed })
			if picked {
				stray := Flow{Proto: "udp", From: self, Port: from, To: dialed, Now: dialed}
				if i := slices.Index(got, stray); i >= 0 {
					got = slices.Delete(got, i, i+1)
				} else {
					t.Errorf("no %+v in %+v", stray, got)
				}
			}
			if err != nil || len(got) != 1 || got[0] != want {
				t.Errorf("translated %+v, %v", got, err)
			}
		}
		if err := Remove(func(end netip.AddrPort) bool { return end.Port() == from }); err != nil {
			t.Error(err)
		}
		if err := Remove(func(end netip.AddrPort) bool { return end == through }); err != nil {
			t.Error(err)
		}
		if got, err := Flows(func(Flow) bool { return true }); err != nil || len(got) != 0 {
			t.Errorf("after it was removed: %+v, %v", got, err)
		}
		if got, err := Translations("tcp", Rewrite{To: server, Now: server}.Selects); err != nil ||
			len(got) != 1 || got[0].From != direct {
			t.Errorf("the other one: %v, %v", got, err)
		}
		if err := Flush(); err != nil {
			t.Error(err)
		}
		if u, err := Read(); err != nil || u.Entries != 0 {
			t.Errorf("after a flush: %+v, %v", u, err)
		}
		return nil
	})
}

func TestRewrite(t *testing.T) {
	translated(t, func() error {
		_, through := connected(t)
		other := netip.AddrFrom4([4]byte{127, 0, 0, 2})
		for name, tt := range map[string]struct {
			of   Rewrite
			want bool
		}{
			"destination":     {Rewrite{Proto: "tcp", To: dialed, Now: server}, true},
			"another-answers": {Rewrite{Proto: "tcp", To: dialed, Now: dialed}, false},
			"protocol":        {Rewrite{Proto: "udp", To: dialed, Now: server}, false},
			"client": {Rewrite{Proto: "tcp", To: dialed, Now: server, From: self,
				As: self}, true},
			"another-client": {Rewrite{Proto: "tcp", To: dialed, Now: server, From: other}, false},
			"as-another":     {Rewrite{Proto: "tcp", To: dialed, Now: server, As: other}, false},
			"source-kept":    {Rewrite{Proto: "tcp", To: dialed, Now: server, Source: Kept}, true},
			"source-changed": {Rewrite{Proto: "tcp", To: dialed, Now: server, Source: Changed},
				false},
		} {
			got, err := Translations(tt.of.Proto, tt.of.Selects)
			if err != nil || (len(got) == 1) != tt.want || tt.want && got[0].From != through {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		}
		if _, err := Translations("sctp", Rewrite{To: dialed}.Selects); err == nil {
			t.Error("an unknown protocol is accepted")
		}
		return nil
	})
}

// The table keeps a connection that has ended, and Take returns it only once.
func TestTake(t *testing.T) {
	translated(t, func() error {
		_, through := connected(t)
		c, err := net.Dial("tcp4", dialed.String())
		if err != nil {
			return err
		}
		from := c.LocalAddr().(*net.TCPAddr).AddrPort()
		if err := errors.Join(c.(*net.TCPConn).SetLinger(0), c.Close()); err != nil {
			return err
		}
		pick := func(x Translation) bool { return x.To == dialed }
		for _, want := range [][]netip.AddrPort{{from}, nil} {
			open, ended, err := Take("tcp", false, pick)
			if err != nil || len(open) != 1 || open[0].From != through || len(ended) != len(want) ||
				len(want) > 0 && ended[0].From != want[0] {
				t.Errorf("open %+v, ended %+v, %v, want %v", open, ended, err, want)
			}
		}
		return nil
	})
}
