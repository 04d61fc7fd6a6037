package observe

import (
	"net/netip"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
)

// A packet that is seen while others' senders are looked for has its own looked for afterwards.
func TestSendersWait(t *testing.T) {
	found := make(chan map[sender]map[uint32]bool, 1)
	l := &senders{w: &Watch{}, known: map[sender]bool{}, by: map[sender]map[uint32]bool{},
		found: found}
	seen := sighting{marks: true, out: true, src: netip.MustParseAddrPort("127.0.0.1:40000"),
		dst: netip.MustParseAddrPort("127.0.0.1:80")}
	l.look([]sighting{seen, seen})
	if want := (sender{0, seen.src, seen.dst}); len(l.next) != 1 || l.next[0] != want {
		t.Fatalf("%+v wait, want %+v", l.next, want)
	}
	close(found)
	if !l.settle(true) || len(l.next) != 1 {
		t.Errorf("%+v wait after the others", l.next)
	}
}

// TLS that others send all the time begins few looks, so that those of marked packets are left.
func TestSendersOfTLSWait(t *testing.T) {
	l := &senders{w: &Watch{}, known: map[sender]bool{}, by: map[sender]map[uint32]bool{}, sealed: 2}
	for port := range uint16(9) {
		l.look([]sighting{{seals: true, out: true, src: netip.AddrPortFrom(netip.IPv6Loopback(), 1+port)}})
	}
	if len(l.next) != 9 || l.looks != 0 {
		t.Errorf("%d wait after %d looks", len(l.next), l.looks)
	}
}

// A socket that answers asks nobody: it has the port of one that listens.
func TestInode(t *testing.T) {
	at := func(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
	client, server := at("10.0.0.1:40000"), at("10.0.0.2:443")
	table := []sock.Socket{{Proto: "tcp", Local: client, Remote: server, Inode: 1},
		{Proto: "tcp", Local: server, Remote: client, Inode: 2},
		{Proto: "tcp", Local: at("[::]:443"), Listening: true, Inode: 3}}
	for _, c := range []struct {
		of   sender
		want uint32
	}{{sender{0, client, server}, 1}, {sender{0, client, at("10.9.0.1:80")}, 1},
		{sender{0, server, client}, 0}, {sender{0, at("10.0.0.1:40001"), server}, 0}} {
		if got := c.of.inode(table); got != c.want {
			t.Errorf("%v: %d, want %d", c.of, got, c.want)
		}
	}
}
