package docker

import (
	"context"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
	"github.com/bridgetoll/bridgetoll/internal/path/pathtest"
)

func TestBesideConformance(t *testing.T) {
	d := daemon(t)
	b := &Docker{Parent: "card0"}
	ctx := context.Background()
	// What dockerd does once, and what stays for the whole run: the connection and
	// the trial, and dockerd's handle on its own namespace.
	for _, spec := range []path.Spec{{Mode: mode.Bridge, From: mode.FromHost, To: mode.ToContainer}, {Mode: mode.Host, From: mode.FromHost, To: mode.ToLoopback}} {
		if err := b.Check(ctx, spec); err != nil {
			t.Fatal(err)
		}
		p, err := b.Build(ctx, spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	off := slices.Contains(d.flags, noProxy)
	o := pathtest.Options{
		Around: around,
		Lacks: func(u *path.UnsupportedError) bool {
			say := func(s string) bool { return strings.Contains(u.Missing, s) }
			switch {
			case say("by docker-proxy where"), say("talk to each other without a link"):
				return !off
			case say("without docker-proxy"):
				return off
			case say("routed networks"), say("answers UDP from another"):
				return b.engine.major() < 27
			}
			return true
		},
		Common: func(h path.Hop) bool { return h.Name == "lo" && h.Where == thisMachine },
	}
	for _, m := range strings.Split(os.Getenv(modesEnv), ",") {
		o.Only, o.NoCrowds = mode.Name(m), os.Getenv(enginesOf) != "all" && m != string(mode.Bridge)
		pathtest.Run(t, b, o)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// around is the way to the server's container without its published port.
func around(t *testing.T, p *path.Path) (pathtest.Traffic, bool) {
	t.Helper()
	b, ok := p.Servers[0].Place.(contained)
	if !ok || p.Spec.Mode != mode.PublishNAT && p.Spec.Mode != mode.PublishProxy {
		return pathtest.Traffic{}, false
	}
	return pathtest.ExchangeAt(t, p, netip.AddrPortFrom(b.addr, serverPort)), true
}
