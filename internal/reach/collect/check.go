package collect

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
)

const (
	connectTimeout = time.Second
	closedWithin   = 150 * time.Millisecond
	// RootlessKit 3.3 closes 200 ms after it accepted if nothing listens behind it, for clients of
	// loopback addresses; for others 10 s.
	relayClosedWithin = 500 * time.Millisecond
)

// mostChecks is the largest number of connections that Check makes at a time.
const mostChecks = 16

// Check connects from this machine to the report's paths, without sending data, and adds the
// results to r.Checks. It skips UDP, because a server need not answer.
func Check(ctx context.Context, r *ports.Report) {
	tried := map[string]bool{}
	var relays []string // of each check, "" if the holder is none
	first := len(r.Checks)
	for _, row := range r.Ports {
		for _, c := range []ports.Client{ports.Loopback, ports.Loopback6, ports.OwnAddr} {
			p, ok := row.Paths[c]
			if !ok || row.Proto != "tcp" || tried[p.Dial] {
				continue
			}
			tried[p.Dial] = true
			relay := ""
			if ports.IsRelay(row.Holder.Kind) {
				relay = row.Holder.Kind
			}
			relays = append(relays, relay)
			r.Checks = append(r.Checks, ports.Check{Client: c, Dial: p.Dial, Expected: p.Kind})
		}
	}
	var all sync.WaitGroup
	turn := make(chan bool, mostChecks)
	for i, relay := range relays {
		turn <- true
		all.Go(func() {
			check(&r.Checks[first+i], relay, func(within time.Duration) ports.Check {
				return connect(ctx, r.Checks[first+i].Dial, within)
			})
			<-turn
		})
	}
	all.Wait()
}

// check makes the connection of k by connect, once more if a timeout contradicts the report: on a
// busy machine one packet may be lost, and the kernel sends it again only after connectTimeout.
// relay is the relay that has the socket, or "".
func check(k *ports.Check, relay string, connect func(within time.Duration) ports.Check) {
	within := closedWithin
	if relay != "" {
		within = relayClosedWithin
	}
	got := connect(within)
	if got.Got == "timeout" && !agrees(k.Expected, got.Got) {
		got = connect(within)
	}
	k.Got, k.Detail, k.Elapsed = got.Got, got.Detail, got.Elapsed
	if k.Agrees = agrees(k.Expected, k.Got); k.Got == "connected" && k.Expected == ports.Nothing &&
		relay != "" {
		k.Agrees, k.Detail = true, "accepted by "+relay+", which proves no server"
	}
}

func connect(ctx context.Context, dial string, within time.Duration) ports.Check {
	start := time.Now()
	d := net.Dialer{Timeout: connectTimeout}
	conn, err := d.DialContext(ctx, "tcp", dial)
	k := ports.Check{Got: "connected", Elapsed: time.Since(start).Seconds()}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		k.Got = "refused"
	case errors.Is(err, syscall.ECONNRESET): // by pasta, before connect has returned
		k.Got, k.Detail = "closed", "accepted, then reset at once"
	case err != nil && os.IsTimeout(err):
		k.Got = "timeout"
	case err != nil:
		k.Got, k.Detail = "error", err.Error()
	default:
		defer conn.Close()
		_ = conn.SetReadDeadline(time.Now().Add(within))
		if n, err := conn.Read(make([]byte, 1)); n == 0 && err != nil && !os.IsTimeout(err) {
			k.Got, k.Detail = "closed", "accepted, then closed at once"
		}
	}
	return k
}

// agrees reports whether a path of kind w can have the result got. A server may close the
// connection at once, but so does a proxy without a server.
func agrees(w ports.PathKind, got string) bool {
	switch w {
	case ports.Nothing:
		return got == "refused" || got == "closed"
	case ports.Blocked:
		return got == "timeout" || got == "error" || got == "refused"
	}
	return got == "connected" || got == "closed"
}
