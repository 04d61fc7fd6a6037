package observe

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// lines serves a protocol in which each line is a request, and answers with a line in two writes.
func lines(serves time.Duration, nagle bool) func(net.Conn) {
	return func(c net.Conn) {
		_ = c.(*net.TCPConn).SetNoDelay(!nagle)
		for r := bufio.NewReader(c); ; {
			if _, err := r.ReadString('\n'); err != nil {
				return
			}
			time.Sleep(serves)
			for _, half := range []string{"hal", "f\n"} {
				if _, err := io.WriteString(c, half); err != nil {
					return
				}
			}
		}
	}
}

// relay copies both ways, after a pause on the way to the client.
func relay(m *machine, to string, pause time.Duration) func(net.Conn) {
	return func(c net.Conn) {
		up, _, err := m.dial(context.Background(), "tcp", to)
		if err != nil {
			return
		}
		defer up.Close()
		var over sync.WaitGroup
		over.Go(func() {
			_, _ = io.Copy(up, c)
			_ = up.(*net.TCPConn).CloseWrite()
		})
		for b := make([]byte, 4096); ; {
			n, err := up.Read(b)
			time.Sleep(pause)
			if _, errWrite := c.Write(b[:n]); err != nil || errWrite != nil {
				break
			}
		}
		c.Close()
		over.Wait()
	}
}

// talks makes n requests over each of some connections at once.
func talks(m *machine, at string, connections, n int) error {
	errs := make([]error, connections)
	var over sync.WaitGroup
	for i := range errs {
		over.Go(func() {
			c, _, err := m.dial(context.Background(), "tcp", at)
			if err != nil {
				errs[i] = err
				return
			}
			defer c.Close()
			r := bufio.NewReader(c)
			for range n {
				if _, err := io.WriteString(c, "request\n"); err != nil {
					errs[i] = err
					return
				}
				if _, err := r.ReadString('\n'); err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	over.Wait()
	return errors.Join(errs...)
}

func exchanges(t testing.TB, m *machine, at string, do func() error) *sample.Evidence {
	t.Helper()
	e, unseen, err := Exchanges(t.Context(), m.pid, func() (uint16, error) {
		c, _, err := m.dial(t.Context(), "tcp", at)
		if err != nil {
			return 0, err
		}
		defer c.Close()
		time.Sleep(50 * ms)
		return uint16(c.LocalAddr().(*net.TCPAddr).Port), nil
	}, do)
	if err := errors.Join(unseen, err); err != nil {
		t.Fatal(err)
	}
	return e
}

// TestExchanges plants a delay in the server, in a relay, and in the server's TCP.
func TestExchanges(t *testing.T) {
	for name, tt := range map[string]struct {
		serves, pause time.Duration
		nagle         bool
		most          string
		hops          int
	}{
		"server":          {serves: 5 * ms, most: sample.EvidenceServer, hops: 1},
		"server, relayed": {serves: 5 * ms, pause: ms / 10, most: sample.EvidenceServer, hops: 2},
		"relay":           {serves: ms, pause: 5 * ms, most: sample.EvidenceRelay, hops: 2},
		"Nagle":           {nagle: true, most: sample.EvidenceTCP, hops: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.nagle {
				needsWrites(t)
			}
			m := newMachine(t)
			m.serve(t, "127.0.0.1:6000", lines(tt.serves, tt.nagle))
			at := "127.0.0.1:6000"
			if tt.hops == 2 {
				at = "127.0.0.1:6001"
				m.serve(t, at, relay(m, "127.0.0.1:6000", tt.pause))
			}
			testwait.Unhindered(t, time.Minute, func(u testing.TB) {
				e := exchanges(t, m, at, func() error { return talks(m, at, 4, 30) })
				if why, ok := e.Clear(); !ok || e.Responses != 4*27 || len(e.Hops) != tt.hops {
					u.Fatalf("%+v: %s", e, why)
				}
				var sum float64
				var most sample.EvidencePart
				for _, p := range e.Parts {
					if sum += p.Last; p.Last > most.Last {
						most = p
					}
					if len(p.Epochs) != 10 {
						u.Fatalf("%+v", p)
					}
				}
				if most.Part != tt.most || most.Last < 0.7*sum {
					u.Errorf("%s has %.1f of %.1f ms: %+v", most.Part, most.Last*1e3, sum*1e3, e.Parts)
				}
				if tt.nagle && (len(e.Waits) == 0 || e.Waits[0].Cause != sample.WaitNagle) {
					u.Errorf("waits: %+v", e.Waits)
				}
			})
		})
	}
}

// TestExchangesBesideOthers has other connections that come and go, of which one may look like a
// relay's: before the server's, or between a relay's and the server's.
func TestExchangesBesideOthers(t *testing.T) {
	for name, at := range map[string]string{"direct": "127.0.0.1:6000", "relayed": "127.0.0.1:6001"} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.serve(t, "127.0.0.1:6000", lines(ms, false))
			m.serve(t, "127.0.0.1:7000", lines(0, false))
			copies := relay(m, "127.0.0.1:6000", 0)
			m.serve(t, "127.0.0.1:6001", func(c net.Conn) {
				time.Sleep(20 * ms) // so that others' connections are opened before its own
				copies(c)
			})
			done := make(chan struct{})
			var over sync.WaitGroup
			defer over.Wait()
			defer close(done)
			over.Go(func() {
				for {
					select {
					case <-done:
						return
					case <-time.After(5 * ms):
						if err := talks(m, "127.0.0.1:7000", 1, 2); err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
			want := map[string][]uint16{"direct": {6000}, "relayed": {6000, 6001}}[name]
			testwait.Unhindered(t, patience, func(u testing.TB) {
				e := exchanges(u, m, at, func() error { return talks(m, at, 2, 40) })
				var ports []uint16
				for _, h := range e.Hops {
					ports = append(ports, h.Port)
				}
				if why, ok := e.Clear(); !ok || !slices.Equal(ports, want) ||
					e.Writes != recordsWrites(t) {
					u.Errorf("%d: %+v: %s", ports, e, why)
				}
			})
		})
	}
}

func TestExchangesOfNoClient(t *testing.T) {
	m := newMachine(t)
	m.serve(t, "127.0.0.1:6000", lines(ms, false))
	e := exchanges(t, m, "127.0.0.1:6000", func() error { return nil })
	if _, ok := e.Clear(); ok || e.Responses != 0 {
		t.Errorf("%+v", e)
	}
	failed := fmt.Errorf("the client failed")
	_, _, err := Exchanges(t.Context(), m.pid, func() (uint16, error) { return 1, nil },
		func() error { return failed })
	if !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
}
