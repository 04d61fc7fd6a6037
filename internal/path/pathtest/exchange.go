package pathtest

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/path"
)

// arg is the argument that makes a test binary an end of an exchange.
const arg = "pathtest-end"

const (
	exchanged   = 3 << 20 // bytes each way
	exchangeMax = 20 * time.Second
)

// Main runs an end of an exchange if this process was started as one; call
// it first in TestMain.
func Main() {
	if len(os.Args) < 4 || os.Args[1] != arg {
		return
	}
	if err := end(os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// end sends random bytes and checks that the other end received the same:
// the server sends back each byte and then the checksum of what it saw.
func end(role, addr string) error {
	if role == "server" {
		return serve(addr)
	}
	c, err := net.DialTimeout("tcp", addr, exchangeMax)
	if err != nil {
		return err
	}
	defer c.Close()
	data := make([]byte, exchanged)
	if _, err := rand.Read(data); err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write(data)
		sent <- errors.Join(err, c.(*net.TCPConn).CloseWrite())
	}()
	back := make([]byte, exchanged+sha256.Size)
	if _, err := io.ReadFull(c, back); err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	if err := <-sent; err != nil {
		return fmt.Errorf("send: %w", err)
	}
	want := sha256.Sum256(data)
	if got := sha256.Sum256(back[:exchanged]); got != want || [sha256.Size]byte(back[exchanged:]) != want {
		return errors.New("the bytes changed on the way")
	}
	fmt.Println("done")
	_, _ = io.Copy(io.Discard, os.Stdin) // keep the connection until told
	return nil
}

func serve(addr string) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	c, err := ln.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(c, h), c); err != nil {
		return err
	}
	if _, err := c.Write(h.Sum(nil)); err != nil {
		return err
	}
	fmt.Println("done")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

// Traffic is an exchange whose connection is still open, so that counters
// which end with it can be read. Stop ends it.
type Traffic struct {
	path.Moved
	Stop func()
}

// Exchange moves checksummed bytes both ways over p.
func Exchange(t *testing.T, p *path.Path) Traffic {
	t.Helper()
	return ExchangeAt(t, p, p.Dial)
}

// ExchangeAt is Exchange with another address to dial.
func ExchangeAt(t *testing.T, p *path.Path, dial netip.AddrPort) Traffic {
	t.Helper()
	s := startEnd(t, p.Server, "server", p.Listen)
	s.await(t, "ready")
	c := startEnd(t, p.Client, "client", dial)
	c.await(t, "done")
	s.await(t, "done")
	return Traffic{
		Moved: path.Moved{Forward: exchanged, Backward: exchanged + sha256.Size, Connections: 1},
		Stop:  func() { c.stop(t); s.stop(t) },
	}
}

type running struct {
	proc  *path.Process
	lines *bufio.Reader
	role  string
}

func startEnd(t *testing.T, place path.Place, role string, addr netip.AddrPort) *running {
	t.Helper()
	proc, err := place.Start(path.Command{Args: []string{arg, role, addr.String()}})
	if err != nil {
		t.Fatal(err)
	}
	return &running{proc, bufio.NewReader(proc.Out), role}
}

// stop ends the end by its input, as it should end.
func (r *running) stop(t *testing.T) {
	t.Helper()
	if err := errors.Join(r.proc.In.Close(), r.proc.Wait(), r.proc.Out.Close()); err != nil {
		t.Errorf("%s: %v", r.role, err)
	}
}

func (r *running) await(t *testing.T, word string) {
	t.Helper()
	timer := time.AfterFunc(exchangeMax, func() { _ = r.proc.Kill() })
	defer timer.Stop()
	line, err := r.lines.ReadString('\n')
	if strings.TrimSpace(line) != word {
		_ = r.proc.Kill()
		t.Fatalf("%s said %q (%v), wanted %q: %v", r.role, line, err, word, r.proc.Wait())
	}
}
