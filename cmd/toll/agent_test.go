package main

import (
	"context"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/agent"
	"github.com/bridgetoll/bridgetoll/internal/path"
	"github.com/bridgetoll/bridgetoll/internal/worker"
)

// The command is an agent that takes its identity from the environment and starts
// workers, and nothing else.
func TestAgent(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
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
	bundle := filepath.Join(t.TempDir(), "bundle")
	if err := os.WriteFile(bundle, key.Bundle(), 0o600); err != nil {
		t.Fatal(err)
	}
	// The first address is nobody's.
	cmd := exec.CommandContext(ctx, binary(t), "agent", "--bundle", bundle, "--dial", "127.0.0.1:1,"+hub.Addr().String())
	cmd.Env = append(os.Environ(), "BRIDGETOLL_AGENT_ID=task.1", "BRIDGETOLL_AGENT_NAME=container on node b")
	var said strings.Builder
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
	p, err := a.Start(path.Command{Args: []string{worker.Arg}, Env: worker.Env})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.In.Write([]byte(`{"role":"nobody","load":{"kind":"rr"}}` + "\n")); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(p.Out)
	if err != nil || !strings.Contains(string(got), `unknown role`) {
		t.Errorf("the worker says %q, %v", got, err)
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := a.Start(path.Command{Args: []string{"compare"}}); err == nil {
		t.Error("an agent compares")
	}
	if err := hub.Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil || said.Len() > 0 {
		t.Errorf("the agent ended with %v, %q", err, said.String())
	}
}
