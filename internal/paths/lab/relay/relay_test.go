package relay

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

const patience = 30 * time.Second

type words struct{ bytes.Buffer }

func (*words) Close() error { return nil }

func arguments(proto string, at, to netip.AddrPort) []string {
	return []string{"-proto", proto, "-host-ip", at.Addr().String(), "-host-port",
		strconv.Itoa(int(at.Port())),
		"-container-ip", to.Addr().String(), "-container-port", strconv.Itoa(int(to.Port()))}
}

func run(t *testing.T, args []string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ready, write := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, args, write) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
	if said, err := io.ReadAll(ready); err != nil || string(said) != "0\n" {
		t.Fatalf("it says %q, %v", said, err)
	}
}

func TestTCP(t *testing.T) {
	server := testnet.Serve(t, func(c net.Conn) {
		all, _ := io.ReadAll(c)
		_, _ = c.Write(bytes.ToUpper(all))
	})
	at := testnet.TCP(t)
	run(t, arguments("tcp", at, server))
	sent := strings.Repeat("toll", 1<<18)
	for range 2 {
		c, err := net.Dial("tcp4", at.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, sent); err != nil {
			t.Fatal(err)
		}
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(c); err != nil || string(got) != strings.ToUpper(sent) {
			t.Errorf("%d bytes came back, %v", len(got), err)
		}
	}
}

func TestNobodyListens(t *testing.T) {
	at := testnet.TCP(t)
	run(t, arguments("tcp", at, testnet.TCP(t)))
	c, err := net.Dial("tcp4", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, _ := io.ReadAll(c); len(got) > 0 {
		t.Errorf("%q came", got)
	}
}

func TestUDP(t *testing.T) {
	server, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		buf := make([]byte, largest)
		for {
			n, from, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(bytes.ToUpper(buf[:n]), from)
		}
	}()
	at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 3}), testnet.Port(t))
	run(t, arguments("udp", at, server.LocalAddr().(*net.UDPAddr).AddrPort()))
	for _, word := range []string{"one", strings.Repeat("x", 60_000)} {
		c, err := net.Dial("udp4", at.String()) // connected: it receives only from there
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		buf := make([]byte, largest)
		var n int
		testwait.Until(t, patience, "an answer came", func() bool { // a datagram may be lost
			_, _ = io.WriteString(c, word)
			_ = c.SetReadDeadline(time.Now().Add(time.Second))
			n, err = c.Read(buf)
			return err == nil
		})
		if got := string(buf[:n]); got != strings.ToUpper(word) {
			t.Errorf("%d bytes came back", len(got))
		}
	}
}

func TestRefuses(t *testing.T) {
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	at := taken.Addr().(*net.TCPAddr).AddrPort()
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"port-in-use": {arguments("tcp", at, at),
			"1\nlisten tcp4 127.0.0.1:PORT: bind: address already in use"},
		"unknown-protocol": {arguments("sctp", at, at), "1\nunsupported protocol \"sctp\""},
		"unknown-flag":     {[]string{"-x"}, "1\nflag provided but not defined: -x"},
		"no-address": {append(arguments("tcp", at, at), "-container-ip", "nowhere:1"),
			"1\nlookup nowhere:1: no such host"},
	} {
		t.Run(name, func(t *testing.T) {
			var said words
			err := Run(context.Background(), tt.args, &said)
			if got := testgolden.Stable(said.String()); err == nil || got != tt.want {
				t.Errorf("%v: %q, want %q", err, got, tt.want)
			}
		})
	}
}

func TestNetwork(t *testing.T) {
	for ip, want := range map[string]string{"0.0.0.0": "tcp4", "::": "tcp6", "::1": "tcp6",
		"127.0.0.1": "tcp4"} {
		if got := (flags{proto: "tcp", hostIP: ip}).network(); got != want {
			t.Errorf("%s: %s", ip, got)
		}
	}
}
