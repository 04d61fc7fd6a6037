package tokens

import (
	"crypto/tls"
	"net"
	"testing"
)

// greets returns what a real client sends first, and the random number in it.
func greets(t testing.TB) (first []byte, h Hello) {
	t.Helper()
	ours, theirs := net.Pipe()
	defer theirs.Close()
	go func() {
		defer ours.Close()
		_ = tls.Client(ours, &tls.Config{ServerName: "x"}).Handshake()
	}()
	b := make([]byte, 16<<10)
	n, err := theirs.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n], Hello(b[helloAt:])
}

const (
	proxy1 = "PROXY TCP4 192.0.2.1 192.0.2.2 5000 443\r\n"
	proxy2 = "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\x16\x03\x01\x02\xc0\x00\x02\x02\x13\x88\x01\xbb"
)

func TestHello(t *testing.T) {
	hello, want := greets(t)
	for _, preface := range []string{"", proxy1, proxy2} {
		for size := 1; size < 100; size++ {
			var g greeting
			for rest := append([]byte(preface), hello...); len(rest) > 0; {
				n := min(size, len(rest))
				g.feed(rest[:n])
				rest = rest[n:]
			}
			if !g.seen || g.Hello != want || g.at != int64(len(preface)) || g.kept != nil {
				t.Fatalf("%q in pieces of %d: %+v", preface, size, g)
			}
		}
	}
	for _, other := range []string{"POST / HTTP/1.1\r\n" + string(hello), string(hello[:20]),
		"PROXY" + string(make([]byte, mostPreface)) + string(hello)} {
		if _, _, ok := HelloOf([]byte(other)); ok {
			t.Errorf("found in %q", other)
		}
	}
	var g greeting
	g.feed([]byte("POST / HTTP/1.1\r\n"))
	if g.kept != nil || !g.over {
		t.Error("what is no beginning of TLS was kept")
	}
}

func FuzzHello(f *testing.F) {
	hello, _ := greets(f)
	f.Add(hello, 7)
	f.Add(append([]byte(proxy1), hello...), 50)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		h, at, ok := HelloOf(b)
		var g greeting
		for rest := b; len(rest) > 0; {
			n := min(max(1, size), len(rest))
			g.feed(rest[:n])
			rest = rest[n:]
		}
		if g.seen != ok || g.Hello != h || g.at != int64(at) {
			t.Errorf("at once %v at %d, %x; in pieces %+v", ok, at, h, g)
		}
	})
}
