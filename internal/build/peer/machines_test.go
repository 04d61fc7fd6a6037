package peer_test

import (
	"bytes"
	_ "embed"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/build/path/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testwait"
)

// boot makes two machines of namespaces, a and b, on a switch whose ports send so many
// bits a second; b has a real sshd with keys of its own, and no file of this machine's
// changes. All of it ends with its first process.
//
//go:embed machines_test.sh
var boot string

// pair is such machines.
type pair struct {
	dir, pid string
	docker   string // host of machine a's daemon; "": it has none
}

func newPair(t *testing.T) *pair {
	t.Helper()
	for _, p := range []string{"/usr/sbin/sshd", "/usr/bin/ssh", "ssh-keygen", "unshare", "nsenter", "ip", "tc", "ss"} {
		if _, err := exec.LookPath(p); err != nil {
			pathtest.SkipOrFail(t, "%v", err)
		}
	}
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "sshd needs root here")
	}
	p := &pair{dir: t.TempDir()}
	if err := os.Chmod(filepath.Dir(p.dir), 0o755); err != nil { // the plain user's key is there
		t.Fatal(err)
	}
	var (
		said bytes.Buffer
		out  io.Reader
	)
	m := pathtest.Boot(t, boot, func(cmd *exec.Cmd) {
		var err error
		cmd.Stderr = &said
		if out, err = cmd.StdoutPipe(); err != nil {
			t.Fatal(err)
		}
	}, p.dir, "4gbit")
	ready := make(chan string, 1)
	go func() {
		b := make([]byte, 100)
		n, _ := out.Read(b)
		ready <- string(b[:n])
	}()
	select {
	case s := <-ready:
		if !strings.Contains(s, "ready") {
			pathtest.SkipOrFail(t, "no machines start here: %s", &said)
		}
	case <-time.After(time.Minute):
		t.Fatal("the machines do not come up")
	}
	p.pid = m.First()
	return p
}

// on is a command on a machine.
func (p *pair) on(machine string, args ...string) *exec.Cmd {
	pid, _ := os.ReadFile(filepath.Join(p.dir, machine+".pid"))
	cmd := exec.Command("nsenter", append([]string{"-t", p.pid, "-n", "-m", "-p", "nsenter", "-t", strings.TrimSpace(string(pid)), "-n", "-m", "-u"}, args...)...)
	cmd.Env = append(os.Environ(), "TOLL_HISTORY=off", "PATH="+p.dir+"/bin:"+os.Getenv("PATH"))
	return cmd
}

// toll runs toll on machine a, with ssh's known hosts of that kind.
func (p *pair) toll(t *testing.T, known string, args ...string) (code int, said string) {
	t.Helper()
	var both bytes.Buffer
	cmd := p.on("a", append([]string{pathtest.Toll(t)}, args...)...)
	cmd.Env = append(cmd.Env, "PEER_TEST_KNOWN="+known, "DOCKER_HOST="+p.docker, "XDG_STATE_HOME="+p.dir+"/state")
	cmd.Stdout, cmd.Stderr = &both, &both
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), both.String()
}

// nothingLeft waits until machine b has no file and no process of toll.
func (p *pair) nothingLeft(t *testing.T) {
	t.Helper()
	testwait.Until(t, time.Minute, "nothing of toll is left on the peer", func() bool {
		files, _ := filepath.Glob(p.dir + "/tmp/*")
		out, _ := p.on("b", "pgrep", "-af", "agent --stdio bridgetoll-").Output()
		return len(files) == 0 && !strings.Contains(string(out), "agent --stdio bridgetoll-")
	})
}

const there = "10.78.0.2"

// A toll on one machine measures to another one by a real ssh.
func TestPeer(t *testing.T) {
	p := newPair(t)
	greeting := filepath.Join(p.dir, "home", ".bashrc")
	for _, tt := range []struct {
		name, known, greet string
		args               string
		code               int
		want               []string // of it
	}{
		{"ipv4", "known", "", "--peer " + there, 0, []string{"Witnessed", "wire    eth0⇄eth0", "address family: IPv4", "route back: 10.78.0.1 by eth0 to 10.78.0.2"}},
		{"ipv6-greeting", "known", "echo Welcome; seq 3000; printf 'no newline'", "--to address6 --peer [fd78::2]:22", 0, []string{"Witnessed", "dialling [fd78::1]:", "address family: IPv6"}},
		{"plain-user", "known", "", "--to address6 --peer plain@" + there + " --peer-dial fd78::1", 0, []string{"Witnessed", "dialling [fd78::1]:", "settings not watched on: peer 10.78.0.2: needs root"}},
		{"endless-greeting", "known", "yes", "--peer " + there, 3, []string{"it said nothing that toll understands in 1048576 bytes"}},
		{"leaves-at-once", "known", "echo closed today; exit 3", "--peer " + there, 3, []string{"the last that it said: closed today"}},
		{"wrong-key", "wrong", "", "--peer " + there, 3, []string{"the host key of 10.78.0.2 is not the one that ssh knows", "toll: hint: "}},
		{"unknown-key", "empty", "", "--peer " + there, 3, []string{"ssh does not know the host key of 10.78.0.2"}},
		{"not-let-in", "known", "", "--peer stranger@" + there, 3, []string{"does not let you in without asking for a password"}},
		{"no-server", "known", "", "--peer " + there + ":23", 3, []string{"runs no ssh server there"}},
		{"other-family", "known", "", "--to address6 --peer " + there, 3, []string{"the peer dials 10.78.0.1, which is of the other address family"}},
		{"not-own-address", "known", "", "--peer " + there + " --peer-dial 10.78.0.77", 3, []string{"this machine has no address 10.78.0.77"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.greet != "" {
				if err := os.WriteFile(greeting, []byte(tt.greet+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				defer os.Remove(greeting)
			}
			code, said := p.toll(t, tt.known, append([]string{"path", "native"}, strings.Fields(tt.args)...)...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			for _, w := range tt.want {
				if !strings.Contains(said, w) {
					t.Errorf("%q is missing", w)
				}
			}
			if t.Failed() {
				t.Log(said)
			}
			p.nothingLeft(t)
		})
		if tt.name == "ipv4" { // the others find the same toll there, which takes less time
			if err := os.Symlink(pathtest.Toll(t), filepath.Join(p.dir, "there", "toll")); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Run("killed", func(t *testing.T) {
		cmd := p.measuring(t)
		p.kill(t, "a", "toll compare native --peer")
		_ = cmd.Wait()
		p.nothingLeft(t)
	})
	t.Run("peer-leaves", func(t *testing.T) {
		cmd := p.measuring(t)
		p.kill(t, "b", "toll agent --stdio bridgetoll-")
		err := cmd.Wait()
		said := cmd.Stdout.(*bytes.Buffer).String()
		if err == nil || !strings.Contains(said, "peer 10.78.0.2 left") {
			t.Errorf("%v: %s", err, said)
		}
		p.nothingLeft(t)
	})
}

// A client on the peer reaches containers of this machine's Docker Engine.
func TestPeerOfContainers(t *testing.T) {
	pathtest.NeedsDaemons(t)
	p := newPair(t)
	p.docker = "unix://" + p.dir + "/sock"
	docker := "DOCKER_HOST=" + p.docker
	log, err := os.Create(filepath.Join(p.dir, "dockerd.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	d := p.on("a", "dockerd", "--data-root", p.dir+"/data", "--exec-root", p.dir+"/exec", "--pidfile", p.dir+"/docker.pid", "-H", p.docker)
	d.Stdout, d.Stderr = log, log
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // dockerd itself ends with its machine
		_ = d.Process.Kill()
		_ = d.Wait()
		if said, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("dockerd: %s", said)
		}
	})
	testwait.Until(t, time.Minute, "dockerd answers", func() bool {
		cmd := p.on("a", "docker", "version")
		cmd.Env = append(cmd.Env, docker)
		return cmd.Run() == nil
	})
	for _, tt := range []struct {
		name, args string
		code       int
		want       []string
	}{
		{"host", "path host --peer " + there, 0, []string{"Witnessed", "wire    eth0⇄eth0", "dialling 10.78.0.1:"}},
		{"published", "path publish-nat --peer " + there, 0, []string{"Witnessed", "wire    eth0⇄eth0", "DNAT ", "bridge ", "veth ", "dialling 10.78.0.1:"}},
		{"six", "path publish-nat --peer " + there + " --peer-dial fd78::1", 3, []string{"which is of the other address family", "toll: hint: "}},
		{"inside", "path bridge --peer " + there + " --from remote", 2, []string{"bridge"}},
		{"compared", "compare host publish-nat native --peer " + there + " --load rr --rounds 2 --window 60ms --quiet", 0, []string{"publish-nat"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, said := p.toll(t, "known", strings.Fields(tt.args)...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			for _, w := range tt.want {
				if !strings.Contains(said, w) {
					t.Errorf("%q is missing", w)
				}
			}
			if t.Failed() {
				t.Log(said)
			}
			p.nothingLeft(t)
			cmd := p.on("a", "docker", "ps", "-aq")
			cmd.Env = append(cmd.Env, docker)
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("containers are left: %s %v", out, err)
			}
		})
	}
}

// kill kills the processes of a pair that have that in their command line. They are in a
// PID namespace of their own.
func (p *pair) kill(t *testing.T, machine, like string) {
	t.Helper()
	out, err := p.on(machine, "pgrep", "-f", "^/[^ ]*"+like).Output()
	if err != nil {
		t.Fatalf("no process is like %s: %v", like, err)
	}
	if out, err := p.on(machine, append([]string{"kill", "-KILL"}, strings.Fields(string(out))...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// measuring is a toll that measures to the peer.
func (p *pair) measuring(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := p.on("a", pathtest.Toll(t), "compare", "native", "--peer", there, "--budget", "10m", "--load", "rr")
	said := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	testwait.Until(t, time.Minute, "the client's process is on the peer", func() bool {
		out, _ := p.on("b", "pgrep", "-f", "toll worker").Output()
		return len(out) > 0
	})
	return cmd
}
