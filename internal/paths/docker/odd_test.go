package docker

import (
	"errors"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// shows runs toll, and checks its exit code and that it prints all of want.
func shows(t *testing.T, code int, args string, want ...string) {
	t.Helper()
	cmd, out := toll(strings.Fields(args)...)
	err := cmd.Run()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		t.Errorf("toll %s: %v, want exit code %d: %s", args, err, code, out)
	}
	for _, w := range want {
		if !strings.Contains(out.String(), w) {
			t.Errorf("toll %s does not show %q: %s", args, w, out)
		}
	}
}

// The daemon's two address pools are taken, and containers have users of their own.
func TestBesideRemappedInFullPools(t *testing.T) {
	daemon(t)
	sh(t, "docker network create users") // docker0 has the other
	before := truth(t)
	shows(t, 0, "path bridge --on docker --from container", "Witnessed")
	shows(t, 0, "path host --on docker --from container", "Witnessed")
	shows(t, 0, "path shared --on docker --from container", "Witnessed")
	b := &Docker{}
	defer b.Close()
	e, err := b.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e.laying.Lock() // as by a path that waits until it may make its network
	p, err := b.Build(t.Context(), path.Spec{Mode: mode.Bridge, From: mode.FromContainer,
		To: mode.ToContainer})
	e.laying.Unlock()
	if err == nil {
		err = p.Close()
	}
	if err := errors.Join(err, b.Close()); err != nil {
		t.Error(err)
	}
	sameTruth(t, "after four paths", before)
	sh(t, "docker network rm users")
}

// docker-proxy relays the connections to published ports, also those to the machine's own address.
func TestBesideRuleless(t *testing.T) {
	daemon(t)
	shows(t, 0, "path publish --on docker --from host --to loopback", "Witnessed", "docker-proxy")
	shows(t, 0, "path bridge --on docker --from container", "Witnessed")
	for _, args := range []string{"path publish --to address", "path publish-default --to address",
		"path publish-nat --to address"} {
		shows(t, 3, args+" --on docker --from host",
			`this Docker writes no rules ("iptables": false)`, "hint: --to loopback")
	}
}
