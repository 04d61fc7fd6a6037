package swarm

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// The run is endless.
type meshRun struct {
	cmd        *exec.Cmd
	node       int
	said       *bytes.Buffer
	file, mark string
	over       chan struct{}
}

func (c *testCluster) begin(t *testing.T, r *meshRun, args ...string) {
	t.Helper()
	r.said, r.over = &bytes.Buffer{}, make(chan struct{})
	r.cmd = c.on(r.node, args...)
	r.cmd.Stdout, r.cmd.Stderr = r.said, r.said
	r.cmd.WaitDelay = 10 * time.Second // nsenter may be killed, and toll continue
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = r.cmd.Wait()
		close(r.over)
	}()
}

func (r *meshRun) ended() bool {
	select {
	case <-r.over:
		return true
	default:
		return false
	}
}

// errors of a manager around an election, or without CPU
var leaderless = regexp.MustCompile("lost leader status|does not have a leader|" +
	"no elected primary cluster manager|no node takes tasks|code = DeadlineExceeded")

// start runs a load that the wires bound, not the CPUs.
func (c *testCluster) start(t *testing.T, node int, toll, dir string) *meshRun {
	t.Helper()
	r := &meshRun{node: node, file: filepath.Join(
		dir, strings.ReplaceAll(t.Name(), "/", "-")+".jsonl")}
	r.mark = "^" + toll + " mesh .*" + filepath.Base(r.file)
	first := func(visits []pathtest.Visit) bool { return len(visits) > 3 }
	for range 5 {
		c.begin(t, r, toll, "mesh", "--rounds", "10000", "--window", "100ms", "--load", "bulk",
			"--quiet", "--save", r.file)
		testwait.Met(patience, func() bool { return r.ended() || first(pathtest.Visits(r.file)) })
		if !r.ended() || !leaderless.MatchString(r.said.String()) {
			break
		}
		t.Logf("begun again: %s", r.said)
		_ = os.Remove(r.file)
		c.settles(t)
	}
	r.waitFor(t, "its first visits", first)
	return r
}

const patience = 90 * time.Second

func (r *meshRun) waitFor(t *testing.T, what string, enough func([]pathtest.Visit) bool) {
	t.Helper()
	met := func() bool { return enough(pathtest.Visits(r.file)) }
	testwait.Met(patience, func() bool { return r.ended() || met() })
	if !met() {
		_ = r.cmd.Process.Kill()
		<-r.over
		t.Fatalf("no sign of %s:\n%s", what, r.said)
	}
}

func (r *meshRun) goesOn(t *testing.T) {
	t.Helper()
	r.waitFor(t, "going on without node3", func(visits []pathtest.Visit) bool {
		lost := slices.IndexFunc(visits, func(v pathtest.Visit) bool {
			return strings.Contains(v.Failure, "node3 left")
		})
		return lost >= 0 && slices.ContainsFunc(visits[lost:], func(v pathtest.Visit) bool {
			return v.Pair[0]+v.Pair[1] == 1 && v.Failure == ""
		})
	})
}

func (r *meshRun) interrupt(t *testing.T, c *testCluster) {
	t.Helper()
	c.run(t, r.node, "pkill", "-INT", "-f", r.mark)
	if !testwait.Met(patience, r.ended) {
		_ = r.cmd.Process.Kill()
		<-r.over
		t.Fatalf("it did not end:\n%s", r.said)
	}
	if code := r.cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit %d\n%s", code, r.said)
	}
}

func (c *testCluster) settles(t *testing.T) {
	t.Helper()
	var out []byte
	if !testwait.Met(patience, func() bool {
		out, _ = c.on(1, "docker", "node", "ls", "--format",
			"{{.Status}} {{.Availability}}").CombinedOutput()
		return strings.Count(string(out), "Ready Active") == 3
	}) {
		t.Fatalf("the nodes do not come back: %s", out)
	}
}
