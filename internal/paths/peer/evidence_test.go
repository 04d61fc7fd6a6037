package peer_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// alone is a command that sees no process and no network namespace of another machine.
func (p *pair) alone(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := p.on("a", append([]string{"unshare", "-m", "-p", "-f", "--mount-proc", "sh", "-c",
		`umount -l /run/netns/*; exec "$@"`, "sh", pathtest.Toll(t)}, args...)...)
	cmd.Env = append(cmd.Env, "DOCKER_HOST=", "XDG_STATE_HOME="+p.dir+"/state")
	said := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = said, said
	return cmd
}

// TestServerOnPeer asks a server on a peer from this machine: when each token left it is seen
// there.
func TestServerOnPeer(t *testing.T) {
	t.Parallel()
	p := newPair(t, "")
	p.serve(t, "b", there+":8000", pauseEnv+"=20ms")
	url := "gpu=http://" + there + ":8000"
	for _, tt := range []struct {
		name, peer string
		want       []string
	}{
		{"root", there, []string{"Neither, over gpu: of ", "Seen from the server (",
			"at port 8000 of peer 10.78.0.2) on: ", "the server's listen queue did not overflow"}},
		{"no root there", "plain@" + there,
			[]string{"When tokens left the server is unknown over " +
				"gpu: toll must be root on peer 10.78.0.2 to capture packets there " +
				"(--peer root@…, or " +
				"--peer-sudo).", "The server's side was not examined: toll must be root on peer " +
				"10.78.0.2 to capture packets there (--peer root@…, or --peer-sudo)."}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := p.alone(t, "stream", url, "--from", "host", "--budget", "3s", "--details",
				"--peer", tt.peer)
			if err := cmd.Run(); err != nil {
				t.Error(err)
			}
			words := strings.Join(strings.Fields(said(cmd)), " ")
			for _, w := range tt.want {
				if !strings.Contains(words, w) {
					t.Errorf("%q is missing", w)
				}
			}
			if tt.peer == there && strings.Contains(words, "not examined") {
				t.Error("the server's side was not examined")
			}
			if t.Failed() || os.Getenv("PEER_TEST_SHOW") != "" {
				t.Log(said(cmd))
			}
			p.nothingLeft(t)
		})
	}
	t.Run("leaves", func(t *testing.T) {
		cmd, _ := p.asking(t, url, "300")
		if out, err := p.processes("b", "^/[^ ]*toll[^ ]* __observe"); err != nil || out == "" {
			t.Errorf("no observer is on the peer: %v", err)
		}
		p.kill(t, "b", "toll[^ ]* agent --stdio bridgetoll-")
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		words := strings.Join(strings.Fields(said(cmd)), " ")
		if !strings.Contains(words, "allow no verdict: peer 10.78.0.2: peer 10.78.0.2 left") {
			t.Errorf("%s", said(cmd))
		}
		p.nothingLeft(t)
		p.observesNothing(t)
	})
	t.Run("interrupted", func(t *testing.T) {
		cmd, results := p.asking(t, url, "2000")
		interrupt := `kill -INT $(pgrep -f "^[^ ]*toll stream .*` + results + `")`
		if out, err := p.on("a", "sh", "-c", interrupt).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 130 ||
			!strings.Contains(said(cmd), "its TCP") {
			t.Errorf("exit code %d: %s", code, said(cmd))
		}
		p.nothingLeft(t)
		p.observesNothing(t)
	})
}

// asking starts toll stream on its own, and returns when it has made a few visits.
func (p *pair) asking(t *testing.T, url, rounds string) (cmd *exec.Cmd, results string) {
	t.Helper()
	results = filepath.Join(t.TempDir(), "results")
	cmd = p.alone(t, "stream", url, "--from", "host", "--rounds", rounds, "--quiet", "--peer",
		there, "--save", results)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	testwait.Until(t, 3*time.Minute, "a few visits were made", func() bool {
		b, _ := os.ReadFile(results)
		return bytes.Count(b, []byte("\n")) > 4
	})
	return cmd, results
}

// observesNothing fails unless the observers on the peer end.
func (p *pair) observesNothing(t *testing.T) {
	t.Helper()
	testwait.Until(t, time.Minute, "no observer is left on the peer", func() bool {
		out, _ := p.processes("b", "^/[^ ]*toll[^ ]* __observe")
		return out == ""
	})
}
