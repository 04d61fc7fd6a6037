package writes

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

const patience = time.Minute

func opened(t *testing.T, ports ...uint16) *Recorder {
	t.Helper()
	r, err := Open(ports...)
	if u := (*machine.UnsupportedError)(nil); errors.As(err, &u) {
		pathtest.SkipOrFail(t, "%s", u)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// pair returns both ends of a connection.
func pair(t *testing.T, at string) (server, client *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Skip(err) // no IPv6
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		s.Close()
	})
	return s.(*net.TCPConn), c.(*net.TCPConn)
}

func TestRecorder(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		other, otherClient := pair(t, at)
		server, client := pair(t, at)
		local := uint16(server.LocalAddr().(*net.TCPAddr).Port)
		remote := uint16(client.LocalAddr().(*net.TCPAddr).Port)
		r := opened(t, local)
		send := func(from, to net.Conn, n int) {
			t.Helper()
			if _, err := from.Write(make([]byte, n)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(to, make([]byte, n)); err != nil {
				t.Fatal(err)
			}
		}
		before := clock.Now()
		send(other, otherClient, 3) // at another port
		send(client, server, 5)     // in the other direction
		send(server, client, 7)
		if err := server.SetNoDelay(false); err != nil {
			t.Fatal(err)
		}
		send(server, client, 11)
		after := clock.Now()
		var all []Event
		testwait.Until(t, patience, "both writes and segments are recorded", func() bool {
			if err := r.Read(func(e *Event) { all = append(all, *e) }); err != nil {
				t.Fatal(err)
			}
			return len(all) >= 4
		})
		if len(all) != 4 {
			t.Fatalf("%s: %+v", at, all)
		}
		for i, want := range []Event{{Kind: Write, Len: 7}, {Kind: Send, Len: 7},
			{Kind: Write, Len: 11, Nagle: true}, {Kind: Send, Len: 11, Nagle: true}} {
			e := all[i]
			if e.Kind != want.Kind || e.Len != want.Len || e.Nagle != want.Nagle ||
				e.Local != local || e.Remote != remote || e.NetNS == 0 || e.Window == 0 ||
				e.At < before || e.At > after || i > 0 && e.At < all[i-1].At ||
				(e.Kind == Write) != (e.Thread != 0) {
				t.Errorf("%s: event %d: %+v, want %+v", at, i, e, want)
			}
		}
		if all[0].Seq != all[1].Seq || all[2].Seq != all[3].Seq || all[2].Seq-all[0].Seq != 7 {
			t.Errorf("%s: sequence numbers of %+v", at, all)
		}
		if err := r.Pause(); err != nil {
			t.Fatal(err)
		}
		send(server, client, 13)
		if err := r.Resume(); err != nil {
			t.Fatal(err)
		}
		send(server, client, 17)
		all = nil
		testwait.Until(t, patience, "the write after the pause is recorded", func() bool {
			if err := r.Read(func(e *Event) { all = append(all, *e) }); err != nil {
				t.Fatal(err)
			}
			return len(all) >= 2
		})
		if len(all) != 2 || all[0].Len != 17 {
			t.Errorf("%s: after a pause %+v", at, all)
		}
		if n, err := r.Lost(); n != 0 || err != nil {
			t.Errorf("lost %d, %v", n, err)
		}
	}
}
