package load

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

const (
	warmup = 20 * time.Millisecond
	window = 60 * time.Millisecond
)

func options(s sample.Load) Options {
	return Options{Load: s, NewHistogram: func() *hdrhistogram.Histogram {
		return hdrhistogram.New(1, int64(time.Minute), 3)
	}}
}

func inTime(t *testing.T, f func(u testing.TB)) {
	t.Helper()
	testwait.Unhindered(t, time.Minute, f)
}

func ends(t testing.TB, err error) {
	t.Helper()
	if s := err.Error(); !strings.Contains(s, "the load ended before ") &&
		!errors.Is(err, errNothing) && !errors.Is(err, errCutOff) {
		t = testwait.Hard(t)
	}
	t.Fatal(err)
}

func agree(t testing.TB, client, server Stats) {
	t.Helper()
	if client.Counts[workload.Failed] > 0 { // failed connections may have bytes under way
		return
	}
	if server.TotalRecv != client.TotalSent || client.TotalRecv > server.TotalSent {
		testwait.Hard(t).Errorf(
			"the client sent %d and received %d bytes, the server received %d and sent %d",
			client.TotalSent, client.TotalRecv, server.TotalRecv, server.TotalSent)
	}
}

// opened opens both ends of a load at addr; the client dials what via returns.
func opened(t testing.TB, addr netip.AddrPort, o Options,
	via func(netip.AddrPort) netip.AddrPort) (*Server, *Client) {
	t.Helper()
	Prepare(2 * o.Threads())
	srv, err := Listen(addr, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Bounds = true
	cli, err := Dial(via(addr), o)
	if err != nil {
		t.Fatal(err)
	}
	return srv, cli
}

func direct(a netip.AddrPort) netip.AddrPort { return a }

// run runs both ends and closes them.
func run(srv *Server, cli *Client, when Schedule) (client, server Stats, err error) {
	done := make(chan error, 1)
	go func() {
		got, err := srv.Run(when)
		server = got
		done <- err
	}()
	client, err = cli.Run(when)
	err = errors.Join(err, <-done, cli.Close(), srv.Close())
	return client, server, err
}

func windows(warmup, window time.Duration) func(int64) Schedule {
	return func(begin int64) Schedule {
		return Schedule{Start: begin, From: begin + int64(warmup), To: begin + int64(warmup+window)}
	}
}

// soon returns a schedule that leaves both ends the time to start.
func soon(warmup, window time.Duration) Schedule {
	return windows(warmup, window)(clock.Now() + int64(10*time.Millisecond))
}

func between(t testing.TB, s sample.Load, when func(begin int64) Schedule,
	via func(netip.AddrPort) netip.AddrPort) (client, server Stats) {
	t.Helper()
	srv, cli := opened(t, testnet.TCP(t), options(s), via)
	client, server, err := run(srv, cli, when(clock.Now()+int64(10*time.Millisecond)))
	if err != nil {
		ends(t, err)
	}
	agree(t, client, server)
	return client, server
}

func both(t testing.TB, s sample.Load) (client, server Stats) {
	t.Helper()
	return between(t, s, windows(warmup, window), direct)
}

func over(t testing.TB, s sample.Load, when func(begin int64) Schedule,
	via func(netip.AddrPort) netip.AddrPort) (client, server Stats, err error) {
	t.Helper()
	srv, cli := opened(t, freeUDP(t), options(s), via)
	return run(srv, cli, when(clock.Now()+int64(10*time.Millisecond)))
}
