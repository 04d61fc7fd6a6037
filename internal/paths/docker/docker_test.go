package docker

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

func TestBesideConformance(t *testing.T) {
	d := daemon(t)
	b := &Docker{Parent: "card2"} // its switch reflects frames
	// The first path makes what stays: the connection, the trial and dockerd's handle on its
	// namespace.
	for _, spec := range []path.Spec{{Mode: mode.Bridge, From: mode.FromHost, To: mode.ToContainer},
		{Mode: mode.Host, From: mode.FromHost, To: mode.ToLoopback}} {
		first(t, b, spec)
	}
	l := &lab.Lab{Engine: labEngine(b.engine)}
	if slices.Contains(d.Flags, noProxy) {
		l.ProxyPath = "off"
	}
	o := promises(b, d)
	o.Truth = func(t *testing.T, p *path.Path) { likeTheLab(t, l, p, b.engine.Major(), o.Short) }
	for _, m := range strings.Split(os.Getenv(modesEnv), ",") {
		o.Only, o.Short = mode.Name(m), !pathtest.AllEngines() && m != string(mode.Bridge)
		pathtest.Run(t, b, o)
	}
	if err := errors.Join(b.Close(), l.Close()); err != nil {
		t.Error(err)
	}
}

func first(t *testing.T, b *Docker, spec path.Spec) {
	t.Helper()
	if err := b.Check(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	p, err := b.Build(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestBesideApart(t *testing.T) {
	daemon(t)
	b := &Docker{}
	defer b.Close()
	spec := path.Spec{Mode: mode.BridgeDefault, From: mode.FromHost, To: mode.ToContainer}
	if err := b.Check(t.Context(), spec); err != nil {
		t.Errorf("from the machine: %v", err)
	}
	spec.From = mode.FromContainer
	var u *machine.UnsupportedError
	if err := b.Check(t.Context(), spec); !errors.As(err, &u) ||
		!strings.Contains(u.Missing, `"icc": false`) {
		t.Errorf("from another container: %v", err)
	}
}

func TestBesideDefaultBridge(t *testing.T) {
	daemon(t)
	testwait.Unhindered(t, 3*time.Minute, func(u testing.TB) {
		cmd, out := toll("compare", "bridge-default", "publish-default", "--on", "docker", "--from",
			"host,container", "--load", "bulk,rr",
			"--pin", "far,near", "--rounds", "1", "--window", "20ms", "--quiet", "--details")
		_ = cmd.Run() // visits may fail on a busy machine, but not for another reason
		if strings.Contains(out.String(), "not witnessed") {
			t.Errorf("%v\n%s", cmd.ProcessState, out)
		}
		for _, from := range []string{"The machine itself", "Another container"} {
			for _, load := range []string{"bulk, 1 stream", "rr, 1 byte each way"} {
				for _, on := range []string{"on own CPUs", "on one CPU"} {
					if title := from + " → container, " + load + ", " + on; !strings.Contains(out.String(), title) {
						u.Errorf("%q is missing:\n%s", title, out)
					}
				}
			}
		}
	})
}

func promises(b *Docker, d *pathtest.Dockerd) pathtest.Options {
	off := slices.Contains(d.Flags, noProxy)
	return pathtest.Options{
		Around: around,
		Leave:  covered,
		Lacks: func(u *machine.UnsupportedError) bool {
			say := func(s string) bool { return strings.Contains(u.Missing, s) }
			switch {
			case say("overlay networks need a swarm"):
				return !inSwarm()
			case say("Open vSwitch"), say("does not send frames back"), say("DOCKER-USER"):
				return false
			case say("docker-proxy gets the connections"), say("reach each other without a link"):
				return !off
			case say("carry no IPv6"), say("IPv4 addresses only"):
				return true
			case say("without docker-proxy"), say("nothing listens on ::1"):
				return off
			case say("routed networks"), say("does not answer UDP from"):
				return b.engine.Major() < 27
			case say("writes no rules for IPv6"):
				return b.engine.Major() < 27 && !slices.Contains(d.Flags, "--ip6tables")
			case say("default network has no IPv6"):
				return !slices.Contains(d.Flags, "--ipv6")
			case say("IPv6"):
				return false
			}
			return true
		},
		Common: func(h path.Hop) bool {
			return h.Where == thisMachine && (h.Name == "lo" ||
				strings.HasPrefix(h.Name, "docker0") || strings.Contains(h.Name, "-o docker0") ||
				h.Kind == mode.HopWire)
		},
	}
}

// publish-nat and publish-proxy test the route's parts.
func covered(m mode.Name, r mode.Route) bool {
	if pathtest.AllEngines() {
		return false
	}
	switch m {
	case mode.Publish:
		return r.From != mode.FromHost || r.To.Over4() != mode.ToAddress
	case mode.PublishDefault:
		return r.From == mode.FromHost && r.To != mode.ToLoopback || r.To == mode.ToAddress6
	}
	return false
}

func TestBesideRefusesOtherWays(t *testing.T) {
	d := daemon(t)
	b := &Docker{}
	defer b.Close()
	off := slices.Contains(d.Flags, noProxy)
	for _, c := range []struct {
		spec     path.Spec
		off, not string // refusals without docker-proxy, and with it; "": it can be built
	}{
		{path.Spec{Mode: mode.Publish, From: mode.FromHost, To: mode.ToLoopback6},
			"nothing listens on ::1", ""},
		{path.Spec{Mode: mode.PublishDefault, From: mode.FromContainer, To: mode.ToAddress},
			`"icc": false`, ""},
		{path.Spec{Mode: mode.PublishDefault, From: mode.FromHost, To: mode.ToAddress}, "", ""},
		{path.Spec{Mode: mode.PublishNAT, From: mode.FromHost, To: mode.ToLoopback}, "",
			"docker-proxy gets the connections"},
		{path.Spec{Mode: mode.PublishNAT, From: mode.FromContainer, To: mode.ToAddress}, "",
			"docker-proxy gets the connections"},
		{path.Spec{Mode: mode.PublishNAT, From: mode.FromHost, To: mode.ToAddress}, "", ""},
		{path.Spec{Mode: mode.PublishProxy, From: mode.FromHost, To: mode.ToLoopback6},
			"without docker-proxy", ""},
	} {
		want := c.not
		if off {
			want = c.off
		}
		var u *machine.UnsupportedError
		switch err := b.Check(t.Context(), c.spec); {
		case want == "" && err != nil:
			t.Errorf("%s: %v", c.spec, err)
		case want != "" && (!errors.As(err, &u) || !strings.Contains(u.Missing, want)):
			t.Errorf("%s: %v, want %q", c.spec, err, want)
		}
	}
	if off {
		return
	}
	p, err := b.Build(t.Context(), path.Spec{
		Mode: mode.PublishNAT, From: mode.FromHost, To: mode.ToAddress})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if got := p.Route(0).String(); got != "DNAT·bridge·veth" {
		t.Errorf("publish-nat on an engine with docker-proxy: %s", got)
	}
	pathtest.CarriesTwice(t, p)
}

func around(t *testing.T, p *path.Path) (pathtest.Traffic, bool) {
	t.Helper()
	b, ok := p.Servers[0].Place.(contained)
	if !ok || p.Spec.Mode != mode.PublishNAT && p.Spec.Mode != mode.PublishProxy &&
		p.Spec.Mode != mode.Publish && p.Spec.Mode != mode.PublishDefault {
		return pathtest.Traffic{}, false
	}
	return pathtest.ExchangeAt(t, p, netip.AddrPortFrom(b.Addr(), serverPort)), true
}
