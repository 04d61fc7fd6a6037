package engine

import (
	"os/exec"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

func TestRelaysAreMoved(t *testing.T) {
	c := exec.Command("sleep", "3600")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	pid := c.Process.Pid
	own, err := machine.AffinityOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	p := &path.Path{Proxies: []path.Proxy{{Name: "docker-proxy", PID: pid}}}
	var r relays
	one := own[len(own)-1:]
	for _, step := range []struct{ to, want []int }{{nil, own}, {one, one}, {one, one}, {nil, own},
		{one, one}} {
		if err := r.move(p, step.to); err != nil {
			t.Fatal(err)
		}
		if got, err := machine.AffinityOf(pid); err != nil || !slices.Equal(got, step.want) {
			t.Errorf("to %v: it may use %v (%v), want %v", step.to, got, err, step.want)
		}
	}
	if err := r.move(&path.Path{}, one); err != nil {
		t.Errorf("a path without docker-proxy: %v", err)
	}
	if err := r.move(&path.Path{Proxies: []path.Proxy{{PID: 1 << 30}}}, one); err == nil {
		t.Error("a docker-proxy that is gone was moved")
	}
}
