package docker

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

const seenByRules = `sysctl net.bridge.bridge-nf-call-iptables net.bridge.bridge-nf-call-ip6tables
ip -o -d link show type bridge | sed -E 's/^[0-9]+: ([^:]*):.*(nf_call_iptables [01]) (nf_call_ip6tables [01]).*/\1 \2 \3/'`

// Rules must not lose sight of what other bridges forward, and all must be restored.
func TestBesideTunesOfBridges(t *testing.T) {
	daemon(t)
	b := &Docker{}
	defer b.Close()
	sh(t, "ip link add users type bridge && ip link add apart type bridge nf_call_iptables 1")
	t.Cleanup(func() { sh(t, "ip link del users; ip link del apart") })
	before := sh(t, seenByRules)
	build := func(m mode.Name, tune mode.Tunes) *path.Path {
		t.Helper()
		spec := path.Spec{Mode: m, From: mode.FromContainer, To: mode.ToContainer, Tune: tune}
		if err := b.Check(t.Context(), spec); err != nil {
			pathtest.SkipOrFail(t, "%s: %v", spec, err)
		}
		p, err := b.Build(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	bridgeOf := func(p *path.Path) string {
		for _, h := range p.Hops {
			if h.Kind == mode.HopBridge {
				return strings.TrimSuffix(h.Name, " ports")
			}
		}
		return ""
	}
	plain := build(mode.Bridge, "")
	defer plain.Close()
	tuned := build(mode.Bridge, "bridge-nf=off")
	defer tuned.Close()
	again := build(mode.Bridge, "bridge-nf=off+gro=on")
	defer again.Close()
	later := build(mode.Pipework, "")
	defer later.Close()
	exempt := []string{bridgeOf(tuned), bridgeOf(again)}
	said := sh(t, seenByRules)
	for line := range strings.Lines(said) {
		name, values, _ := strings.Cut(strings.TrimSpace(line), " ")
		want := "nf_call_iptables 1 nf_call_ip6tables 1"
		switch {
		case strings.HasPrefix(name, "net."):
			want = "= 0"
		case name == exempt[0] || name == exempt[1]:
			want = "nf_call_iptables 0 nf_call_ip6tables 0"
		}
		if values != want {
			t.Errorf("%s is %q, want %q", name, values, want)
		}
	}
	for _, p := range []struct {
		*path.Path
		seen string
	}{{plain, "1"}, {tuned, "0"}, {again, "0"}, {later, "1"}} {
		if got := p.Sysctls[bridgeNF]; got != p.seen {
			t.Errorf("%s: the result says %s=%s", p.Spec, bridgeNF, got)
		}
		pathtest.CarriesTwice(t, p.Path)
	}
	rule := fmt.Sprintf("%s -i %[2]s -o %[2]s -j DROP", userChain, exempt[0])
	sh(t, "iptables -I "+rule)
	pathtest.CarriesTwice(t, tuned)
	sh(t, "iptables -D "+rule)
	if err := tuned.Close(); err != nil {
		t.Error(err)
	}
	pathtest.CarriesTwice(t, again)
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(before) {
		if now := sh(t, seenByRules); !strings.Contains(now, line) {
			t.Errorf("%s was not restored:\n%s", strings.TrimSpace(line), now)
		}
	}
}

func TestBesideTunesOfBridgesAreRestoredAfterKill(t *testing.T) {
	daemon(t)
	before := sh(t, seenByRules)
	cmd, out := toll("compare", "bridge", "--tune", "bridge-nf=off", "--on", "docker", "--from",
		"container", "--load", "rr", "--pin", "far", "--rounds", "1000", "--quiet")
	r := &midRun{cmd: cmd, out: out}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.waitFor(t, "the tune", func() bool {
		return strings.Contains(sh(t, seenByRules), "call-iptables = 0")
	})
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	clean, said := toll("clean")
	if err := clean.Run(); err != nil ||
		!strings.Contains(said.String(), "removed setting of net.bridge.bridge-nf-call-iptables") {
		t.Errorf("toll clean: %v\n%s", err, said)
	}
	if now := sh(t, seenByRules); now != before {
		t.Errorf("it was\n%sand is\n%s", before, now)
	}
}

// After a reboot another has set it, whom toll clean would overrule.
func TestCleanKeepsSettingsOfAnotherBoot(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix:///none")
	for _, tt := range []struct{ where, want string }{
		{"", "1"}, {"2f6e5d1c-0000-4000-8000-000000000000 net:[1]", "0"}} {
		ns, err := netns.New()
		if err == nil {
			t.Cleanup(func() { ns.Close() })
			err = ns.Do(func() error { return sysctl.Set(bridgeNF, "0") })
		}
		if err != nil {
			pathtest.SkipOrFail(t, "%s cannot be set: %v", bridgeNF, err)
		}
		dir := t.TempDir()
		aJournal(t, dir, journal.Mark()+"9", tt.where,
			[]dockerapi.Entry{{Kind: dockerapi.Setting, Name: bridgeNF}})
		read := 0
		part := dockerapi.Part{Machine: func(orphans []dockerapi.Orphan, _ func(string) bool) ([]string,
			map[string]bool, error) {
			read = len(orphans)
			c := machineCleaner{ns: ns, here: orphans, still: map[string]bool{}}
			c.settings()
			return c.removed, c.still, errors.Join(c.errs...)
		}}
		_, _ = (&dockerapi.Clean{StateDir: dir, Parts: []dockerapi.Part{part}}).Run(t.Context())
		var now string
		if err := ns.Do(func() (err error) {
			now, err = sysctl.Get(bridgeNF)
			return err
		}); err != nil || now != tt.want || read != 1 {
			t.Errorf("of %q: %s is %s, want %s; read %d journals, %v", tt.where, bridgeNF, now, tt.want,
				read, err)
		}
	}
}

// The kernel module may have been unloaded since.
func TestRestoreSysctlThatIsGone(t *testing.T) {
	if was, err := restoreSysctl(bridgeNF + "-of-no-kernel"); was || err != nil {
		t.Errorf("%v, %v", was, err)
	}
}
