package collect

import (
	"context"
	"errors"
	"net"
	"os"
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

// Check connects from this machine to the report's paths, without sending data, and adds the
// results to r.Checks. It skips UDP, because a server need not answer.
func Check(ctx context.Context, r *ports.Report) {
	tried := map[string]bool{}
	for _, row := range r.Ports {
		for _, c := range []ports.Client{ports.Loopback, ports.Loopback6, ports.OwnAddr} {
			p, ok := row.Paths[c]
			if !ok || row.Proto != "tcp" || tried[p.Dial] {
				continue
			}
			tried[p.Dial] = true
			within := closedWithin
			if ports.IsRelay(row.Holder.Kind) {
				within = relayClosedWithin
			}
			k := connect(ctx, p.Dial, within)
			k.Client, k.Dial, k.Expected = c, p.Dial, p.Kind
			if k.Agrees = agrees(p.Kind, k.Got); k.Got == "connected" && p.Kind == ports.Nothing &&
				ports.IsRelay(row.Holder.Kind) {
				k.Agrees, k.Detail = true, "accepted by "+row.Holder.Kind+", which proves no server"
			}
			r.Checks = append(r.Checks, k)
		}
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
