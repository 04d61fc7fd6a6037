package truth

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// waitUntil returns at a time, to some µs. It does not use Go's timers, which an idle program waits
// for in whole milliseconds, rounded up to one.
func waitUntil(at time.Time) {
	const late = 300 * time.Microsecond // the kernel's timer may be
	for d := time.Until(at) - late; d > 0; d = time.Until(at) - late {
		rest := unix.NsecToTimespec(int64(d))
		_ = unix.Nanosleep(&rest, nil)
	}
	for time.Now().Before(at) { //nolint:revive // spins
	}
}

// serve answers each request with tokens at fixed times after it.
func (w *tokenWorld) serve(c *net.TCPConn) {
	if w.nagle.Load() && c.SetNoDelay(false) != nil {
		return
	}
	for br := bufio.NewReader(c); ; {
		r, err := http.ReadRequest(br)
		if err == nil {
			_, err = io.Copy(io.Discard, r.Body)
		}
		if err != nil || w.answer(c, time.Now()) != nil {
			return
		}
	}
}

func (w *tokenWorld) answer(c *net.TCPConn, asked time.Time) error {
	var err error
	head := streamHead
	for i := range tokensEach {
		at := asked.Add(tokenFirst + time.Duration(i)*tokenPace + time.Duration(w.late.Load()))
		err = errors.Join(err, w.token(c, at, head, tokenEvent(i)))
		head = ""
	}
	_, errEnd := io.WriteString(c, streamEnd)
	return errors.Join(err, errEnd)
}

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" +
	"Transfer-Encoding: chunked\r\n\r\n"

var streamEnd = chunk("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n"+
	"data: [DONE]\n\n") + "0\r\n\r\n"

func tokenEvent(i int) string {
	return fmt.Sprintf("data: {\"choices\":[{\"delta\":{\"content\":\"t%d \"}}]}\n\n", i)
}

func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

// ahead is how long before a token's time others fill the queue, or the client is stopped.
const ahead = 2 * time.Millisecond

// token writes a token at a time, behind a header if it is the first.
func (w *tokenWorld) token(c *net.TCPConn, at time.Time, head, event string) error {
	pid, stopped := int(w.toll.Load()), time.Duration(w.stopped.Load())
	waitUntil(at.Add(-ahead))
	if stopped > 0 && pid > 0 {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return err
		}
		defer func() {
			waitUntil(at.Add(stopped))
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}()
	}
	if err := w.fill(int(w.filler.Load())); err != nil {
		return err
	}
	waitUntil(at)
	if w.nagle.Load() {
		if _, err := io.WriteString(c, head+chunk(": first\n\n")); err != nil {
			return err
		}
		head = ""
	}
	_, err := io.WriteString(c, head+chunk(event))
	return err
}

// fill sends bytes of other packets, with their headers, to the server's device.
func (w *tokenWorld) fill(bytes int) error {
	const size, headers = 1400, 28
	to := &net.UDPAddr{IP: net.IPv4(10, 9, 0, 1), Port: discardAt}
	for i, b := 0, make([]byte, size); bytes > 0; i, bytes = i+1, bytes-size {
		n := max(1, min(size, bytes)-headers)
		if _, err := w.others[i%len(w.others)].WriteTo(b[:n], to); err != nil {
			return err
		}
	}
	return nil
}

const tunName = "tun0"

// wire connects the namespaces by devices between which packets are copied.
func (w *tokenWorld) wire() error {
	client, err := w.end(true)
	if err != nil {
		return err
	}
	server, err := w.end(false)
	if err != nil {
		return err
	}
	go carry(client, server, w.forth.Load, w.logs.noteRequest)
	go carry(server, client, w.back.Load, func([]byte) {})
	return nil
}

// end opens the device of one end.
func (w *tokenWorld) end(client bool) (f *os.File, err error) {
	ns, addr := w.server, "10.9.0.2/24"
	if client {
		ns, addr = w.client, "10.9.0.1/24"
	}
	err = ns.Do(func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		request, err := unix.NewIfreq(tunName)
		if err == nil {
			request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
			err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
		}
		f = os.NewFile(uintptr(fd), "tun") // the poller waits for it only if it has a device
		return err
	})
	if f != nil {
		w.closers = append(w.closers, f.Close)
	}
	for _, args := range [][]string{{"addr", "add", addr, "dev", tunName},
		{"link", "set", tunName, "up"}} {
		if err == nil {
			err = inside(ns, "ip", args...)
		}
	}
	return f, err
}

// carry copies packets, each after a time, and calls note before it passes one on.
func carry(from, to *os.File, wait func() int64, note func([]byte)) {
	type packet struct {
		at time.Time
		b  []byte
	}
	const most = 10_000
	line := make(chan packet, most)
	go func() {
		defer close(line)
		for b := make([]byte, 1<<16); ; {
			n, err := from.Read(b)
			if err != nil {
				return
			}
			line <- packet{time.Now(), append([]byte(nil), b[:n]...)}
		}
	}()
	for p := range line {
		if d := time.Duration(wait()); d > 0 {
			waitUntil(p.at.Add(d))
		}
		note(p.b)
		_, _ = to.Write(p.b) // what is lost, TCP sends again
	}
}
