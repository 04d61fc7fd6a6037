package swarm

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
	"github.com/bridgetoll/bridgetoll/internal/path/pathtest"
)

// besideEnv says that this test binary runs on a node of a swarm: it is toll there.
const (
	besideEnv  = "BRIDGETOLL_TEST_SWARM"
	programEnv = "BRIDGETOLL_TEST_TOLL"
)

func TestMain(m *testing.M) {
	pathtest.Main()
	os.Exit(m.Run())
}

// left is what a run could leave on a manager.
const left = "docker service ls -q; docker secret ls -q; docker network ls -q --filter driver=overlay --filter label=io.bridgetoll.run; " +
	"docker images -q 127.0.0.1:1/bridgetoll; docker ps -aq; ls $XDG_STATE_HOME/bridgetoll 2>/dev/null || true"

func TestSwarm(t *testing.T) {
	if os.Getenv(besideEnv) != "" {
		t.Skip("it is what runs this")
	}
	dir := t.TempDir()
	toll, tester := filepath.Join(dir, "toll"), filepath.Join(dir, "swarm.test")
	c := newCluster(t, 3, 1)
	build(t, "build", "-o", toll, "../../cmd/toll")
	build(t, "test", "-c", "-o", tester, ".")
	before := c.run(t, 1, "sh", "-c", left)
	clean := func(t *testing.T, after string) {
		t.Helper()
		now := ""
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
			if now = c.run(t, 1, "sh", "-c", left); now == before {
				return
			}
		}
		t.Errorf("after %s, something is left:\n%s\nbefore:\n%s", after, now, before)
	}

	t.Run("no image", func(t *testing.T) {
		code, _, errOut := c.toll(t, 1, toll, "mesh", "--sweeps", "1", "--window", "50ms")
		if code != 3 || !strings.Contains(errOut, "has not toll's image") || !strings.Contains(errOut, "toll: hint: toll image | ssh node") {
			t.Errorf("exit %d:\n%s", code, errOut)
		}
		clean(t, "a run without the image")
	})
	for _, node := range []int{2, 3} {
		c.run(t, node, "sh", "-c", toll+" image | docker load")
	}

	t.Run("conformance", func(t *testing.T) {
		cmd := c.on(1, tester, "-test.run", "^TestBeside", "-test.v")
		cmd.Env = append(cmd.Env, besideEnv+"=1", programEnv+"="+toll)
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Error(err)
		}
		clean(t, "the conformance suite")
	})

	t.Run("compare", func(t *testing.T) {
		code, out, errOut := c.toll(t, 1, toll, "compare", "host", "publish-nat", "overlay", "overlay-encrypted", "--on", "swarm",
			"--nodes", "node2,node3", "--rounds", "1", "--window", "50ms", "--load", "bulk,rr,stream")
		for _, want := range []string{"remote-container → ", "overlay", "node3 (10.77.0.3)", "CONFIG_INET_ESP"} {
			if !strings.Contains(out, want) {
				t.Errorf("%q is missing", want)
			}
		}
		if code != 0 && code != 4 || strings.Contains(out, "not witnessed") {
			t.Errorf("exit %d", code)
		}
		if t.Failed() {
			t.Logf("%s%s", out, errOut)
		}
		clean(t, "a comparison")
	})

	t.Run("mesh", func(t *testing.T) {
		// Node 3's wire is slow both ways.
		c.run(t, 0, "tc", "qdisc", "add", "dev", "w3", "root", "tbf", "rate", "40mbit", "burst", "64kb", "latency", "20ms")
		c.run(t, 3, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "40mbit", "burst", "64kb", "latency", "20ms")
		code, out, errOut := c.toll(t, 1, toll, "mesh", "--sweeps", "3", "--window", "100ms", "--format", "json")
		var report struct {
			Mesh struct {
				Faults []struct {
					Kind  string
					Nodes []string
				}
			}
		}
		if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 {
			t.Fatalf("exit %d, %v\n%s%s", code, err, out, errOut)
		}
		if len(report.Mesh.Faults) == 0 {
			t.Errorf("the slow wire was not found:\n%s", out)
		}
		for _, f := range report.Mesh.Faults {
			if f.Kind != "node" || !slices.Equal(f.Nodes, []string{"node3"}) {
				t.Errorf("%+v", f)
			}
		}
		c.run(t, 0, "tc", "qdisc", "del", "dev", "w3", "root")
		c.run(t, 3, "tc", "qdisc", "del", "dev", "eth0", "root")
		clean(t, "a mesh")
	})

	t.Run("killed", func(t *testing.T) {
		cmd := c.on(1, toll, "mesh", "--sweeps", "1000", "--window", "20ms", "--quiet")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		c.waitFor(t, "docker ps -q --filter status=running", 1)
		time.Sleep(time.Second)
		c.killToll(t, cmd)
		_, out, errOut := c.toll(t, 1, toll, "clean")
		if !strings.Contains(out, "removed service toll-") || !strings.Contains(out, "removed secret toll-") {
			t.Errorf("toll clean: %s%s", out, errOut)
		}
		clean(t, "SIGKILL and toll clean")
	})

	t.Run("a node leaves", func(t *testing.T) {
		cmd := c.on(1, toll, "mesh", "--sweeps", "6", "--window", "200ms", "--save", filepath.Join(dir, "left.jsonl"))
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			if b, _ := os.ReadFile(filepath.Join(dir, "left.jsonl")); strings.Count(string(b), "\n") > 3 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("no visit was made:\n%s", &said)
			}
		}
		c.run(t, 0, "ip", "link", "set", "w3", "down") // without a word
		err := cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 0 && code != 4 {
			t.Errorf("exit %d, %v", code, err)
		}
		if !strings.Contains(said.String(), "node3") || !strings.Contains(said.String(), "left") {
			t.Errorf("nothing is said of node3:\n%s", &said)
		}
		clean(t, "a run whose node left")
	})
}

// waitFor waits until a command on the manager prints so many lines.
func (c *cluster) waitFor(t *testing.T, command string, lines int) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if strings.Count(c.run(t, 1, "sh", "-c", command)+"\n", "\n") > lines-1 && c.run(t, 1, "sh", "-c", command) != "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %s", command, c.run(t, 1, "sh", "-c", command))
		}
	}
}

// killToll kills toll, not the nsenter that started it.
func (c *cluster) killToll(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	c.run(t, 1, "sh", "-c", "kill -9 $(pgrep -f '^[^ ]*/toll mesh')")
	_ = cmd.Wait()
}

// TestBeside runs on a node: the conformance suite.
func TestBeside(t *testing.T) {
	if os.Getenv(besideEnv) == "" {
		t.Skip("TestSwarm runs it on a node")
	}
	s := &Swarm{Nodes: []string{"node2", "node3"}, Program: os.Getenv(programEnv), Version: "0.1.0"}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	// What stays for the whole run.
	for _, m := range []mode.Name{mode.Host, mode.PublishNAT, mode.Overlay} {
		spec := path.Spec{Mode: m, From: mode.FromRemoteContainer, To: mode.ToAddress}
		if m == mode.Overlay {
			spec.To = mode.ToContainer
		}
		if err := s.Check(context.Background(), spec); err != nil {
			t.Fatal(err)
		}
	}
	o := pathtest.Options{NoCrowds: true, Lacks: func(u *path.UnsupportedError) bool { return true },
		Common: func(h path.Hop) bool { return h.Kind == mode.HopWire }}
	for _, m := range []mode.Name{mode.Host, mode.PublishNAT, mode.Overlay, mode.OverlayEncrypted} {
		o.Only = m
		pathtest.Run(t, s, o)
	}
}
