package lab

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// relayedDatagrams has a route of each kind on which a process counts datagrams.
var relayedDatagrams = []path.Spec{
	{Mode: mode.Pasta, From: mode.FromHost, To: mode.ToLoopback, UDP: true},
	{Mode: mode.Pasta, From: mode.FromRemote, To: mode.ToAddress, UDP: true},
	{Mode: mode.Slirp4netns, From: mode.FromHost, To: mode.ToAddress, UDP: true},
	{Mode: mode.Slirp4netns, From: mode.FromContainer, To: mode.ToOutside, UDP: true},
	{Mode: mode.GvisorTapVsock, From: mode.FromHost, To: mode.ToLoopback, UDP: true},
	{Mode: mode.GvisorTapVsock, From: mode.FromContainer, To: mode.ToOutside, UDP: true},
	{Mode: mode.RootlessPort, From: mode.FromHost, To: mode.ToLoopback, UDP: true},
	{Mode: mode.RootlessPublishTap, From: mode.FromHost, To: mode.ToAddress, UDP: true},
	{Mode: mode.RootlessPublishNAT, From: mode.FromHost, To: mode.ToLoopback, UDP: true},
}

func TestForeignDatagrams(t *testing.T) {
	l := started(t, &Lab{})
	for _, spec := range relayedDatagrams {
		t.Run(spec.String(), func(t *testing.T) {
			skipMissing(t, l, spec)
			p := build(t, l, spec)
			pathtest.Carries(t, p)
			pathtest.ForeignDatagrams(t, p)
		})
	}
}

// A process with the same sockets as the relay's crosses the same devices.
func TestStandInForDatagrams(t *testing.T) {
	for _, m := range []mode.Name{mode.Pasta, mode.RootlessPort} {
		spec := path.Spec{Mode: m, From: mode.FromHost, To: mode.ToLoopback, UDP: true}
		t.Run(spec.String(), func(t *testing.T) {
			var s *site
			l := started(t, &Lab{test: hooks{built: func(b *site) { s = b }}})
			skipMissing(t, l, spec)
			p := build(t, l, spec)
			pathtest.StandIn(t, p, s.a.ns, s.Servers[0].ns,
				netip.AddrPortFrom(loopback, serverPort))
		})
	}
}

func TestRelayEnds(t *testing.T) {
	l := started(t, &Lab{})
	for _, spec := range relayedDatagrams[:3] {
		t.Run(spec.String(), func(t *testing.T) {
			skipMissing(t, l, spec)
			p := build(t, l, spec)
			pathtest.Carries(t, p)
			pathtest.RelayEnds(t, p)
		})
	}
}

// They time out, which Check says before.
func TestLostAnswers(t *testing.T) {
	l := started(t, &Lab{})
	for _, spec := range []path.Spec{
		{Mode: mode.Slirp4netns, From: mode.FromHost, To: mode.ToLoopback, UDP: true},
		{Mode: mode.RootlessPublishTap, From: mode.FromHost, To: mode.ToLoopback, UDP: true},
		{Mode: mode.Pasta, From: mode.FromHost, To: mode.ToAddress, UDP: true},
		{Mode: mode.Pasta, From: mode.FromHost, To: mode.ToAddress6, UDP: true},
	} {
		t.Run(spec.String(), func(t *testing.T) {
			t.Parallel()
			tcp := spec
			tcp.UDP = false
			skipMissing(t, l, tcp)
			refused := l.Check(t.Context(), spec)
			p, err := l.Build(t.Context(), spec)
			switch {
			case err == nil:
				err = p.Close()
				if refused != nil || err != nil {
					t.Errorf("refused by %v, and answered; close: %v", refused, err)
				}
			case refused == nil || !strings.Contains(err.Error(), "no answer within"):
				t.Errorf("refused by %v; %v", refused, err)
			}
		})
	}
}
