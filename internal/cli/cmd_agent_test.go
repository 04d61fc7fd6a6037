package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/measure/worker"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

// The agent needs only its own binary and /proc, as in a container where it is the first process
// and has Docker's usual capabilities.
func TestAgent(t *testing.T) {
	bin := binary(t)
	root := t.TempDir()
	secret := filepath.Join(root, "bundle")
	if err := errors.Join(os.Mkdir(filepath.Join(root, "proc"), 0o755), os.Link(bin, filepath.Join(root, "toll"))); err != nil {
		t.Fatal(err)
	}
	const usual = "-all,+chown,+dac_override,+fsetid,+fowner,+mknod,+net_raw,+setgid,+setuid,+setfcap,+setpcap,+net_bind_service,+sys_chroot,+kill,+audit_write"
	t.Run("here", func(t *testing.T) { agentOf(t, secret, secret, bin) })
	t.Run("container", func(t *testing.T) {
		agentOf(t, secret, "/bundle", "unshare", "--mount", "--pid", "--fork", "--kill-child",
			"--mount-proc="+filepath.Join(root, "proc"),
			"setpriv", "--bounding-set", usual, "--inh-caps", "-all", "chroot", root, "/toll")
	})
}

func agentOf(t *testing.T, secret, bundle string, program ...string) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	key, err := agent.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	hub, err := agent.Listen(netip.MustParseAddrPort("127.0.0.1:0"), key, version)
	if err != nil {
		t.Fatal(err)
	}
	defer hub.Close()
	if err := os.WriteFile(secret, key.Bundle(), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append(program[1:len(program):len(program)], "agent", "--bundle", bundle, "--dial",
		"127.0.0.1:1,"+hub.Addr().String())
	cmd := exec.CommandContext(ctx, program[0], args...)
	cmd.Env = append(os.Environ(), "BRIDGETOLL_AGENT_ID=task.1",
		"BRIDGETOLL_AGENT_NAME=container on node b")
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	a, err := hub.Wait(ctx, "task.1")
	if err != nil {
		t.Fatal(err)
	}
	if a.Name() != "container on node b" {
		t.Errorf("it is called %q", a.Name())
	}
	p, err := a.Start(path.Command{Args: []string{worker.Arg}, Env: worker.Env()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.In.Write([]byte(`{"role":"nobody","load":{"kind":"rr"}}` + "\n")); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(p.Out)
	if want := `{"error":"unknown role \"nobody\""}` + "\n"; err != nil || string(got) != want {
		t.Errorf("%q, want %q; %v", got, want, err)
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := a.Start(path.Command{Args: []string{"compare"}}); err == nil {
		t.Error("an agent compares")
	}
	o, err := a.Clock(ctx)
	if err != nil || o.Ahead.Abs() > o.Unsure {
		t.Errorf("its clock is %+v, %v", o, err)
	}
	use, err := a.Meter(ctx, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if u, err := use(ctx); err != nil || len(u.CPUs) == 0 {
		t.Errorf("its meters say %+v, %v", u, err)
	}
	if c, err := a.Read(agent.Counter{Device: &agent.Device{Name: "lo"}})(); err != nil ||
		c.ForwardPackets == 0 {
		t.Errorf("its loopback device counts %+v, %v", c, err)
	}
	if all, err := a.Interfaces(ctx, ""); err != nil || len(all) == 0 {
		t.Errorf("its interfaces are %+v, %v", all, err)
	}
	if err := hub.Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil || said.Len() > 0 {
		t.Errorf("the agent ended with %v, %q", err, said.String())
	}
}
