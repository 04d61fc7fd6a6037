package testnet

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// Serve listens on a port of 127.0.0.1 until the end of the test. It calls answer for each
// connection, concurrently, and closes the connection afterwards.
func Serve(t testing.TB, answer func(net.Conn)) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go Accept(l, answer)
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// Accept calls answer for each connection, concurrently, and closes the connection afterwards. It
// returns when the listener is closed and all calls have returned.
func Accept(l net.Listener, answer func(net.Conn)) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		all.Go(func() {
			defer c.Close()
			answer(c)
		})
	}
}

// Relay returns an answer that copies to another address and back, after a pause on the way back.
func Relay(to string, pause time.Duration) func(net.Conn) {
	return func(c net.Conn) {
		up, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer up.Close()
		go func() {
			_, _ = io.Copy(up, c)
			up.Close()
		}()
		for b := make([]byte, 64<<10); ; {
			n, err := up.Read(b)
			time.Sleep(pause)
			if _, errWrite := c.Write(b[:n]); err != nil || errWrite != nil {
				return
			}
		}
	}
}
