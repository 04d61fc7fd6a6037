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
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/path"
)

// Arg is the argument that makes a test binary an end of an exchange.
const Arg = "pathtest-end"

// Exchanged is how many bytes the first client moves each way; each further one
// moves a third of that more. A machine that is emulated may have fewer.
var Exchanged = 3 << 20

// exchangeMax bounds an exchange. It is waited out only by one that hangs.
const exchangeMax = time.Minute

// Main runs an end of an exchange if this process was started as one; call
// it first in TestMain.
func Main() {
	if len(os.Args) < 5 || os.Args[1] != Arg {
		return
	}
	if err := end(os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// end sends n random bytes and checks that the other end received the same:
// the server sends back each byte and then the checksum of what it saw, to n
// clients.
func end(role, addr, number string) error {
	n, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	switch role {
	case "server":
		return serve(addr, n)
	case udpServer:
		return serveUDP(addr)
	case udpClient:
		return askUDP(addr, n)
	}
	c, err := net.DialTimeout("tcp", addr, exchangeMax)
	if err != nil {
		return err
	}
	defer c.Close()
	data := make([]byte, n)
	if _, err := rand.Read(data); err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write(data)
		sent <- errors.Join(err, c.(*net.TCPConn).CloseWrite())
	}()
	back := make([]byte, n+sha256.Size)
	if _, err := io.ReadFull(c, back); err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	if err := <-sent; err != nil {
		return fmt.Errorf("send: %w", err)
	}
	want := sha256.Sum256(data)
	if got := sha256.Sum256(back[:n]); got != want || [sha256.Size]byte(back[n:]) != want {
		return errors.New("the bytes changed on the way")
	}
	fmt.Println("done")
	_, _ = io.Copy(io.Discard, os.Stdin) // keep the connection until told
	return nil
}

func serve(addr string, clients int) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	answered := make(chan error, clients)
	for range clients {
		c, err := ln.Accept()
		if err != nil {
			return err
		}
		defer c.Close()
		go func() { answered <- answer(c) }()
	}
	for range clients {
		if err := <-answered; err != nil {
			return err
		}
	}
	fmt.Println("done")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

func answer(c net.Conn) error {
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(c, h), c); err != nil {
		return err
	}
	_, err := c.Write(h.Sum(nil))
	return err
}

// Traffic is an exchange whose connections are still open, so that counters
// which end with them can be read. Stop ends it.
type Traffic struct {
	Moved []path.Moved // by client
	Stop  func()
}

// Exchange moves checksummed bytes both ways over p, between each client and its
// server; each client moves another number of them.
func Exchange(t *testing.T, p *path.Path) Traffic {
	t.Helper()
	return exchange(t, p, func(i int) netip.AddrPort { return p.Clients[i].Dial })
}

// ExchangeAt is Exchange with another address to dial.
func ExchangeAt(t *testing.T, p *path.Path, dial netip.AddrPort) Traffic {
	t.Helper()
	return exchange(t, p, func(int) netip.AddrPort { return dial })
}

func exchange(t *testing.T, p *path.Path, dial func(client int) netip.AddrPort) Traffic {
	t.Helper()
	load := make([]int, len(p.Servers))
	for _, c := range p.Clients {
		load[c.Server]++
	}
	if p.Spec.UDP {
		return exchangeUDP(t, p, dial(0))
	}
	var tr Traffic
	var ends []*running
	for i, s := range p.Servers {
		e := startEnd(t, s.Place, "server", s.Listen, load[i])
		e.await(t, "ready")
		ends = append(ends, e)
	}
	for i, c := range p.Clients {
		n := Exchanged + i*Exchanged/3
		ends = append(ends, startEnd(t, c.Place, "client", dial(i), n))
		tr.Moved = append(tr.Moved, path.Moved{Forward: int64(n), Backward: int64(n) + sha256.Size, Connections: 1})
	}
	for _, e := range ends {
		e.await(t, "done")
	}
	tr.Stop = func() {
		for _, e := range slices.Backward(ends) { // clients first
			e.stop(t)
		}
	}
	return tr
}

type running struct {
	proc  *path.Process
	lines *bufio.Reader
	role  string
}

func startEnd(t *testing.T, place path.Place, role string, addr netip.AddrPort, n int) *running {
	t.Helper()
	proc, err := place.Start(path.Command{Args: []string{Arg, role, addr.String(), strconv.Itoa(n)}})
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
