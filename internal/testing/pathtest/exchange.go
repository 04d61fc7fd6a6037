package pathtest

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
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

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

// Arg makes a test binary one end of an exchange.
const Arg = "pathtest-end"

// exchanged is the number of bytes in each direction for the first client. Each further client
// moves a third of it more.
var exchanged = 1 << 20

// ExchangeLess divides the number of bytes of this process's exchanges by times, for emulated
// machines and paths that lose frames.
func ExchangeLess(times int) { exchanged /= times }

const exchangeMax = time.Minute

// Main runs one end of an exchange if this process was started for that. TestMain must call it
// first.
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

// header is the size of a message's header: the number of bytes that follow. The end of the stream
// cannot mark them, because passt 2023_03 sends bytes twice on half-closed connections.
const header = 8

// end runs an end. A client sends n random bytes and checks that they arrived. The server returns
// each byte and then a checksum, to n clients.
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
	c, err := connect(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	message := make([]byte, header+n)
	if _, err := rand.Read(message); err != nil {
		return err
	}
	binary.BigEndian.PutUint64(message, uint64(n))
	data := message[header:]
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write(message)
		sent <- err
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
	return linger(c)
}

// connect dials an address. A busy kernel completes a new link or address seconds late; until then
// no neighbour answers.
func connect(addr string) (c net.Conn, err error) {
	const longest, pause = 15 * time.Second, 50 * time.Millisecond
	for began := time.Now(); ; time.Sleep(pause) {
		c, err = net.DialTimeout("tcp", addr, exchangeMax)
		if !errors.Is(err, unix.EHOSTUNREACH) || time.Since(began) > longest {
			return c, err
		}
	}
}

// linger prints on request how many bytes TCP has resent, and keeps the connections open until the
// input ends.
func linger(connections ...net.Conn) error {
	fmt.Println("done")
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return nil
	}
	resent := uint64(0)
	for _, c := range connections {
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil {
			return err
		}
		var info *unix.TCPInfo
		if ctlErr := raw.Control(func(fd uintptr) {
			info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		}); ctlErr != nil || err != nil {
			return errors.Join(ctlErr, err)
		}
		resent += info.Bytes_retrans
	}
	fmt.Println(resent)
	_, _ = io.Copy(io.Discard, in)
	return nil
}

func serve(addr string, clients int) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	answered := make(chan error, clients)
	var connections []net.Conn
	for range clients {
		c, err := ln.Accept()
		if err != nil {
			return err
		}
		defer c.Close()
		connections = append(connections, c)
		go func() { answered <- answer(c) }()
	}
	if err := ln.Close(); err != nil { // another path may need its address
		return err
	}
	for range clients {
		if err := <-answered; err != nil {
			return err
		}
	}
	return linger(connections...)
}

func answer(c net.Conn) error {
	var n [header]byte
	if _, err := io.ReadFull(c, n[:]); err != nil {
		return err
	}
	h := sha256.New()
	_, err := io.CopyN(io.MultiWriter(c, h), c, int64(binary.BigEndian.Uint64(n[:])))
	if err != nil {
		return err
	}
	_, err = c.Write(h.Sum(nil))
	return err
}

// Traffic is an exchange whose connections stay open, because some counters end with them. Stop
// ends it.
type Traffic struct {
	Moved []path.Moved // by client
	Stop  func()
}

// Exchange moves checksummed bytes both ways between each client and its server; each client moves
// a different number.
func Exchange(t *testing.T, p *path.Path) Traffic {
	t.Helper()
	return exchangeMore(t, p, 0)
}

func exchangeMore(t *testing.T, p *path.Path, thirds int) Traffic {
	t.Helper()
	return exchange(t, p, thirds, func(i int) netip.AddrPort { return p.Clients[i].Dial })
}

// ExchangeAt is like Exchange, but clients dial another address.
func ExchangeAt(t *testing.T, p *path.Path, dial netip.AddrPort) Traffic {
	t.Helper()
	return exchange(t, p, 0, func(int) netip.AddrPort { return dial })
}

func exchange(t *testing.T, p *path.Path, thirds int,
	dial func(client int) netip.AddrPort) Traffic {
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
		n := exchanged + (thirds+i)*exchanged/3
		ends = append(ends, startEnd(t, c.Place, "client", dial(i), n))
		tr.Moved = append(tr.Moved, path.Moved{
			Forward: header + int64(n), Backward: int64(n) + sha256.Size, Connections: 1})
	}
	for _, e := range slices.Backward(ends) { // clients first: they say why nothing came to a server
		e.await(t, "done", ends...)
	}
	for i, s := range p.Servers {
		ends[i].isProcess(t, s.Machine)
	}
	for i, c := range p.Clients {
		ends[len(p.Servers)+i].isProcess(t, c.Machine)
	}
	tr.addResent(t, p, ends)
	tr.Stop = func() {
		for _, e := range slices.Backward(ends) { // clients first
			e.stop(t)
		}
	}
	return tr
}

// addResent adds the bytes that the ends resent. A server may have resent bytes to any of its
// clients.
func (tr *Traffic) addResent(t *testing.T, p *path.Path, ends []*running) {
	t.Helper()
	for i, e := range ends {
		n := e.resent(t)
		for client := range tr.Moved {
			if i == len(p.Servers)+client || i == p.Clients[client].Server {
				tr.Moved[client].Resent += n
			}
		}
	}
}

type running struct {
	proc  *path.Process
	lines *bufio.Reader
	role  string
}

func startEnd(t *testing.T, place path.Place, role string, addr netip.AddrPort, n int) *running {
	t.Helper()
	proc, err := place.Start(path.Command{Args: []string{
		Arg, role, addr.String(), strconv.Itoa(n)}})
	if err != nil {
		t.Fatal(err)
	}
	return &running{proc, bufio.NewReader(proc.Out), role}
}

func (r *running) isProcess(t *testing.T, on path.Machine) {
	t.Helper()
	if on != nil || r.proc.PID == 0 {
		return
	}
	line, err := os.ReadFile("/proc/" + strconv.Itoa(r.proc.PID) + "/cmdline")
	if err != nil || !slices.Contains(strings.Split(string(line), "\x00"), Arg) {
		t.Errorf("%s: process %d is %q: %v", r.role, r.proc.PID, line, err)
	}
}

func (r *running) stop(t *testing.T) {
	t.Helper()
	if err := errors.Join(r.proc.In.Close(), r.proc.Wait(), r.proc.Out.Close()); err != nil {
		t.Errorf("%s: %v", r.role, err)
	}
}

func (r *running) resent(t *testing.T) int64 {
	t.Helper()
	if _, err := io.WriteString(r.proc.In, "resent?\n"); err != nil {
		t.Fatal(err)
	}
	line, err := r.lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil {
		t.Fatalf("%s said %q of what it sent again", r.role, line)
	}
	return n
}

// await waits until the process says the word. If it does not in time, await describes the sockets
// of all processes that take part, then kills it.
func (r *running) await(t *testing.T, word string, all ...*running) {
	t.Helper()
	sockets := make(chan string, 1)
	timer := time.AfterFunc(exchangeMax, func() {
		sockets <- socketsOf(append(all, r))
		_ = r.proc.Kill()
	})
	defer timer.Stop()
	line, err := r.lines.ReadString('\n')
	if strings.TrimSpace(line) == word {
		return
	}
	text := ""
	if !timer.Stop() {
		text = "\n" + <-sockets
	}
	_ = r.proc.Kill()
	t.Fatalf("%s said %q (%v), wanted %q: %v%s", r.role, line, err, word, r.proc.Wait(), text)
}
