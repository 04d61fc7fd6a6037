package peer_test

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// boot makes three machines of namespaces, a, b and c, on a switch whose ports send so many
// bits a second; b and c have a real sshd with keys of its own, and no file of this machine's
// changes. All of it ends with its first process.
//
//go:embed machines_test.sh
var boot string

type pair struct {
	dir, pid string
	docker   string // "": machine a has no daemon
}

// engine is a Docker Engine's folder; "": the installed one.
func newPair(t *testing.T, engine string) *pair {
	t.Helper()
	for _, p := range []string{"/usr/sbin/sshd", "/usr/bin/ssh", "ssh-keygen", "unshare", "nsenter",
		"ip", "tc", "ss", "nft"} {
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
	}, p.dir, "4gbit", engine)
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
	case <-time.After(5 * time.Minute):
		t.Fatal("the machines do not come up")
	}
	p.pid = m.First()
	return p
}

func (p *pair) on(machine string, args ...string) *exec.Cmd {
	pid, _ := os.ReadFile(filepath.Join(p.dir, machine+".pid"))
	cmd := exec.Command("nsenter", append([]string{
		"-t", p.pid, "-n", "-m", "-p", "nsenter", "-t", strings.TrimSpace(string(pid)), "-n", "-m",
		"-u"}, args...)...)
	cmd.Env = append(os.Environ(), "TOLL_HISTORY=off", "PATH="+p.dir+"/bin:"+os.Getenv("PATH"))
	return cmd
}

// toll runs toll on machine a with the given known hosts. If the machine was too busy, it repeats
// the run at most twice, with twice the rounds.
func (p *pair) toll(t *testing.T, known string, args ...string) (code int, said string) {
	t.Helper()
	for range 2 {
		if code, said = p.tollOnce(t, known, args...); code == 0 || !pathtest.TooBusy(said) {
			return code, said
		}
		args = slices.Clone(args)
		for i, a := range args {
			if n, err := strconv.Atoi(a); err == nil && i > 0 &&
				args[i-1] == "--rounds" {
				args[i] = strconv.Itoa(2 * n)
			}
		}
		t.Logf("made again as toll %s, because the machine was too busy", strings.Join(args, " "))
	}
	return p.tollOnce(t, known, args...)
}

func (p *pair) tollOnce(t *testing.T, known string, args ...string) (code int, said string) {
	t.Helper()
	var both bytes.Buffer
	cmd := p.on("a", append([]string{pathtest.Toll(t)}, args...)...)
	cmd.Env = append(cmd.Env, "PEER_TEST_KNOWN="+known, "DOCKER_HOST="+p.docker,
		"XDG_STATE_HOME="+p.dir+"/state")
	cmd.Stdout, cmd.Stderr = &both, &both
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), both.String()
}

func (p *pair) nothingLeft(t *testing.T) {
	t.Helper()
	testwait.Until(t, time.Minute, "nothing of toll is left on the peer", func() bool {
		files, _ := filepath.Glob(p.dir + "/tmp/*")
		state, _ := filepath.Glob(p.dir + "/home/.local")
		files = append(files, state...)
		out, _ := p.on("b", "pgrep", "-af", "agent --stdio bridgetoll-").Output()
		return len(files) == 0 && !strings.Contains(string(out), "agent --stdio bridgetoll-")
	})
}

const there = "10.78.0.2"

func TestPeer(t *testing.T) {
	t.Parallel()
	p := newPair(t, "")
	greeting := filepath.Join(p.dir, "home", ".bashrc")
	for _, tt := range []struct {
		name, known, greet string
		args               string
		code               int
		want               []string
	}{
		{"ipv4", "known", "", "--peer " + there, 0,
			[]string{"Witnessed", "wire    eth0⇄eth0", "address family: IPv4",
				"route back: 10.78.0.1 by eth0 to 10.78.0.2"}},
		{"ipv6-greeting", "known", "echo Welcome; seq 3000; printf 'no newline'",
			"--to address6 --peer [fd78::2]:22", 0,
			[]string{"Witnessed", "dialling [fd78::1]:", "address family: IPv6"}},
		{"plain-user", "known", "", "--to address6 --peer plain@" + there + " --address fd78::1",
			0, []string{"Witnessed", "dialling [fd78::1]:",
				"settings not watched on: peer 10.78.0.2: needs root"}},
		{"sudo", "known", "", "--peer plain@" + there + " --peer-sudo", 0, []string{"Witnessed"}},
		{"sudo-asks", "known", "", "--peer asked@" + there + " --peer-sudo", 3,
			[]string{"sudo on asked@10.78.0.2 asks for a password",
				`"asked ALL=(root) NOPASSWD: `}},
		{"endless-greeting", "known", "yes", "--peer " + there, 3,
			[]string{"it sent no valid reply in 1048576 bytes"}},
		{"leaves-at-once", "known", "echo closed today; exit 3", "--peer " + there, 3,
			[]string{"the last line that it sent: closed today"}},
		{"wrong-key", "wrong", "", "--peer " + there, 3,
			[]string{"the host key of 10.78.0.2 is not the one that ssh knows", "toll: hint: "}},
		{"unknown-key", "empty", "", "--peer " + there, 3,
			[]string{"ssh does not know the host key of 10.78.0.2"}},
		{"no-shell", "known", "", "--peer shut@" + there, 3,
			[]string{"the last line that it sent: This account is currently not available.",
				"must give a POSIX shell"}},
		{"not-let-in", "known", "", "--peer stranger@" + there, 3,
			[]string{"does not let you in without asking for a password"}},
		{"no-server", "known", "", "--peer " + there + ":23", 3,
			[]string{"runs no ssh server there"}},
		{"other-family", "known", "", "--to address6 --peer " + there, 0,
			[]string{"Witnessed", "dialling [fd78::1]:"}},
		{"named-family", "known", "", "--to address6 --peer " + there + " --address 10.78.0.1", 3,
			[]string{"the peer dials 10.78.0.1, which is of the other address family"}},
		{"link-local", "known", "", "--peer fe80::b%eth0", 0,
			[]string{"Witnessed", "dialling 10.78.0.1:"}},
		{"link-local-four", "known", "", "--peer 169.254.78.2", 0,
			[]string{"Witnessed", "dialling 169.254.78.1:"}},
		{"link-local-named", "known", "", "--peer " + there + " --address 169.254.78.1", 0,
			[]string{"Witnessed", "dialling 169.254.78.1:"}},
		{"link-local-six", "known", "", "--to address6 --peer [fe80::b%eth0]:22", 0,
			[]string{"Witnessed", "dialling [fd78::1]:"}},
		{"outward", "known", "", "--from host --to outside --peer " + there, 0,
			[]string{"Witnessed", "dialling 10.78.0.2:", "wire    eth0⇄eth0"}},
		{"outward-six-plain-user", "known", "", "--from host --to outside6 --peer plain@" + there,
			0, []string{"Witnessed", "dialling [fd78::2]:"}},
		{"not-own-address", "known", "", "--peer " + there + " --address 10.78.0.77", 3,
			[]string{"this machine has no address 10.78.0.77"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.greet != "" {
				if err := os.WriteFile(greeting, []byte(tt.greet+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				defer os.Remove(greeting)
			}
			code, said := p.toll(t, tt.known, append(
				[]string{"path", "native"}, strings.Fields(tt.args)...)...)
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
		if tt.name == "ipv4" {
			t.Run("kept", func(t *testing.T) { p.kept(t) })
			// The others find the same toll there, which saves time.
			if err := os.Symlink(pathtest.Toll(t), filepath.Join(p.dir, "there", "toll")); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Run("full-disk", func(t *testing.T) {
		own := filepath.Join(p.dir, "there", "toll")
		if out, err := p.on("b", "sh", "-c", "mv "+own+" "+own+".off; "+
			"for d in "+p.dir+"/tmp /root; do mount -t tmpfs -o size=64k "+
			"tmpfs $d; done").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		code, said := p.toll(t, "known", "path", "native", "--peer", there)
		if code != 3 || !strings.Contains(said,
			"the copy of toll on the peer is incomplete: the disk there is full") {
			t.Errorf("exit code %d: %s", code, said)
		}
		testwait.Until(t, time.Minute, "the part of the copy is gone", func() bool {
			out, err := p.on("b", "ls", "-A", p.dir+"/tmp").Output()
			return err == nil && len(out) == 0
		})
		if out, err := p.on("b", "sh", "-c", "umount "+p.dir+"/tmp /root; mv "+own+".off "+own).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	})
	t.Run("mesh", func(t *testing.T) { p.mesh(t) })
	t.Run("your-server", func(t *testing.T) { p.yourServer(t) })
	t.Run("killed", func(t *testing.T) {
		cmd := p.measuring(t, "compare", "native")
		p.kill(t, "a", "toll compare native --peer")
		_ = cmd.Wait()
		p.nothingLeft(t)
	})
	t.Run("peer-leaves", func(t *testing.T) {
		cmd := p.measuring(t, "compare", "native")
		p.kill(t, "b", "toll agent --stdio bridgetoll-")
		err := cmd.Wait()
		if err == nil || !strings.Contains(said(cmd), "peer 10.78.0.2 left") {
			t.Errorf("%v: %s", err, said(cmd))
		}
		p.nothingLeft(t)
	})
}

// What was copied once is not copied again, until toll clean --peer removes it.
func (p *pair) kept(t *testing.T) {
	file, err := os.Stat(pathtest.Toll(t))
	if err != nil {
		t.Fatal(err)
	}
	shell := func(command string) string {
		out, err := p.on("b", "sh", "-c", command).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	shell("nft add table inet ssh; nft 'add chain inet ssh in { type filter hook input " +
		"priority 0; }';" +
		"nft add rule inet ssh in tcp dport 22 counter")
	defer shell("nft delete table inet ssh")
	received := func() (bytes int64) {
		_, after, _ := strings.Cut(shell("nft list table inet ssh"), " bytes ")
		if n, err := fmt.Sscan(after, &bytes); n != 1 {
			t.Fatal(err)
		}
		return bytes
	}
	run := func(args ...string) (bytes int64) {
		before := received()
		if code, said := p.toll(t, "known", append(args, "--peer", there)...); code != 0 {
			t.Fatalf("exit code %d: %s", code, said)
		}
		p.nothingLeft(t)
		return received() - before
	}
	const dir = "/root/.cache/bridgetoll"
	second := run("path", "native")
	if code, said := p.toll(t, "known", "clean", "--peer", there); code != 0 ||
		!testgolden.HasLine(said, "removed "+dir+" on "+there) {
		t.Errorf("exit code %d: %s", code, said)
	}
	if code, said := p.toll(t, "known", "clean", "--peer", there); code != 0 ||
		!strings.Contains(said, "Nothing to clean: there is no copy of toll on "+there) {
		t.Errorf("exit code %d: %s", code, said)
	}
	first := run("path", "native")
	t.Logf("toll has %d bytes; the peer received %d, and again %d", file.Size(), first, second)
	if first > file.Size()/2 || second > 1<<20 {
		t.Errorf("toll has %d bytes; the peer received %d, and again %d", file.Size(), first,
			second)
	}
}

// Two routes to one machine are refused; a pair separated by a firewall and a lost machine fail by
// name.
func (p *pair) mesh(t *testing.T) {
	const third = "10.78.0.3"
	for _, tt := range []struct {
		name, args string
		code       int
		want       []string
	}{
		{"twice", there + " fd78::2 --dry-run", 3,
			[]string{"fd78::2 is the same machine as 10.78.0.2",
				"toll: hint: name each machine once"}},
		{"six",
			"localhost " + third +
				" --address fd78::/64 --load rr --rounds 1 --window 300ms --format json", 0,
			[]string{`"address": "fd78::3"`, `"name": "localhost"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, said := p.toll(t, "known", append(
				[]string{"mesh", "--quiet"}, strings.Fields(tt.args)...)...)
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
		})
	}
	t.Run("firewall-and-leaves", func(t *testing.T) {
		// Firewalls drop instead of resetting; ssh stays open.
		block := "iptables -A INPUT -s " + there + " -p tcp --dport 20000:29999 -j DROP"
		if out, err := p.on("c", "sh", "-c", block).CombinedOutput(); err != nil {
			pathtest.SkipOrFail(t, "%v: %s", err, out)
		}
		cmd := p.begin(t, "mesh", "localhost", there, third, "--load", "rr",
			"--rounds", "3", "--window", "300ms", "--quiet")
		testwait.Until(t, time.Minute, "a worker is on machine c", func() bool {
			out, _ := p.processes("c", "toll worker")
			return len(out) > 0
		})
		p.kill(t, "c", "toll agent --stdio bridgetoll-")
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 4 ||
			!strings.Contains(said(cmd), third+" left") {
			t.Errorf("exit code %d: %s", code, said(cmd))
		}
		p.nothingLeft(t)
	})
}

// serve starts a server of tokens on a machine.
func (p *pair) serve(t *testing.T, machine, at string, env ...string) {
	t.Helper()
	server := p.on(machine, os.Args[0])
	server.Env = append(append(server.Env, serveEnv+"="+at), env...)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	_, port, _ := strings.Cut(at, ":")
	testwait.Until(t, time.Minute, "the server listens", func() bool {
		out, _ := p.on(machine, "ss", "-Hltn", "sport = :"+port).Output()
		return len(out) > 0
	})
}

func (p *pair) yourServer(t *testing.T) {
	p.serve(t, "a", "10.78.0.1:8000")
	const few = " --budget 2s --details --peer " + there
	for _, tt := range []struct {
		name, args, client string
		code               int
		want               []string
	}{
		{"stream", "stream lan=http://10.78.0.1:8000 --from host,remote --tokens 2" + few, "", 0,
			[]string{"From here and peer 10.78.0.2 → tiny", "Over lan, lan@remote adds ",
				" 10.78.0.1:8000 "}},
		{"run", "run --to 10.78.0.1:8000 --from remote" + few, "echo {addr}", 0,
			[]string{"From peer 10.78.0.2 → the server"}},
		{"no-program", "run --to 10.78.0.1:8000 --from remote" + few, "no-such-client {addr}", 3,
			[]string{"10.78.0.1:8000@remote: client: it failed (exit status 127)",
				"no-such-client: not found"}},
		{"nobody-listens", "stream http://10.78.0.1:8001 --from remote" + few, "", 3,
			[]string{"connection refused"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := strings.Fields(tt.args)
			if tt.client != "" {
				args = append(args, "--client", tt.client)
			}
			code, said := p.toll(t, "known", args...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			for _, w := range tt.want {
				if !strings.Contains(strings.Join(strings.Fields(said), " "), w) {
					t.Errorf("%q is missing", w)
				}
			}
			if t.Failed() || os.Getenv("PEER_TEST_SHOW") != "" {
				t.Log(said)
			}
			p.nothingLeft(t)
		})
	}
	t.Run("leaves", func(t *testing.T) {
		results := filepath.Join(t.TempDir(), "results")
		cmd := p.begin(t, "stream", "http://10.78.0.1:8000", "--from", "remote", "--tokens", "2",
			"--budget", "10m", "--quiet", "--peer", there, "--save", results)
		testwait.Until(t, time.Minute, "a few visits were made", func() bool {
			b, _ := os.ReadFile(results)
			return bytes.Count(b, []byte("\n")) > 10
		})
		p.kill(t, "b", "toll agent --stdio bridgetoll-")
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 4 ||
			!strings.Contains(said(cmd), "peer 10.78.0.2 left") {
			t.Errorf("exit code %d: %s", code, said(cmd))
		}
		p.nothingLeft(t)
	})
}

func TestPeerOfContainers(t *testing.T) {
	t.Parallel()
	pathtest.NeedsDaemons(t)
	for _, e := range pathtest.Engines(t) {
		t.Run(e.Name, func(t *testing.T) { containers(t, e) })
	}
}

func containers(t *testing.T, e pathtest.Engine) {
	p := newPair(t, e.Root())
	p.docker = p.daemon(t, "a", "here")
	far := p.daemon(t, "b", "there") // the location in sshd's environment
	if err := os.Symlink(pathtest.Toll(t), filepath.Join(p.dir, "there", "toll")); err != nil {
		t.Fatal(err)
	}
	made := func(machine, host string) string {
		t.Helper()
		var all string
		for _, list := range []string{"ps -aq", "images -q", "network ls -q --filter type=custom"} {
			cmd := p.on(machine, append([]string{"docker", "-H", host}, strings.Fields(list)...)...)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("docker %s: %s %v", list, out, err)
			}
			all += string(out)
		}
		return all
	}
	type test struct {
		name, args string
		code       int
		want       []string
	}
	byEngine := []test{ // from 27 on
		{"routed", "path routed --from remote --peer " + there, 0,
			[]string{"Witnessed", "dialling 198.1", "via 10.78.0.1"}},
		{"six-routed", "path routed -6 --from remote --peer " + there, 0,
			[]string{"Witnessed", "via fd78::1"}},
		{"routed-contained", "path routed --from remote-container --peer " + there, 3,
			[]string{"a routed path has no NAT"}},
		{"routed-no-root", "path routed --from remote --peer plain@" + there, 3,
			[]string{"only root can set routes there", "toll: hint: --peer-sudo"}},
		{"six-by-rules", "path publish-nat -6 --from remote --peer " + there, 0,
			[]string{"Witnessed", "dialling [fd78::1]:"}},
		{"outward-routed", "path routed --from container --to outside --peer " + there, 0,
			[]string{"Witnessed", "dialling 10.78.0.2:", "via 10.78.0.1"}},
		{"outward-six", "path bridge --from container --to outside6 --peer " + there, 0,
			[]string{"Witnessed", "dialling [fd78::2]:", "ip6 nat POSTROUTING"}},
	}
	if e.Root() == "" { // Debian 12's 20.10
		byEngine = []test{
			{"routed", "path routed --from remote --peer " + there, 3,
				[]string{"has no routed networks (gateway_mode_ipv4=routed)",
					"Docker Engine 27 or later"}},
			{"six-no-rules", "path publish-nat -6 --from remote --peer " + there, 3,
				[]string{"writes no rules for IPv6 here"}},
			{"outward-six", "path bridge --from container --to outside6 --peer " + there, 3,
				[]string{"writes no rules for IPv6 here"}},
		}
	}
	for _, tt := range append(byEngine, []test{
		{"six", "path publish-nat --peer " + there + " --address fd78::1", 3,
			[]string{"which is of the other address family", "toll: hint: "}},
		{"six-contained", "path publish-nat -6 --from remote-container --peer " + there, 3,
			[]string{"the other machine no IPv6", "toll: hint: --from remote, or -4"}},
		{"six-compared",
			"compare host publish publish-default publish-proxy -6 --from remote --peer " + there +
				" --load rr --rounds 1 --window 60ms --quiet --details", 0,
			[]string{"wire·proxy·b", "Every row was witnessed"}},
		{"outward-cards", "compare macvlan-bridge host --from container --to " +
			"outside,outside6 --peer " + there +
			" --load rr,bulk --rounds 1 --window 100ms --quiet --details", 0,
			[]string{"macvlan·wire", "macvlan-bridge :out6", "Every row was witnessed"}},
		{"outward-card-of-one", "path macvlan-private --from container --to outside --peer " +
			there,
			0, []string{"Witnessed", "route of toll's on the peer: 198.1", "/32 via eth0"}},
		{"outward-no-root", "path macvlan-bridge --from container --to outside --peer plain@" +
			there,
			3, []string{"only root can set routes there", "toll: hint: --peer-sudo"}},
		{"inside", "path bridge --peer " + there + " --from remote", 2, []string{"bridge"}},
		{"outward", "compare bridge bridge-default --to outside --peer " + there +
			" --load rr,crr,bulk,bulk-reverse,udp-rr --rounds 1 --window 100ms --quiet --details",
			0, []string{"Another container → outside, rr", "Another container ← outside, bulk",
				"·MASQ·wire", "Every row was witnessed"}},
		{"both-ways", "compare bridge --from container --to container,outside --peer " + there +
			" --load rr --rounds 1 --window 100ms --quiet --details", 0,
			[]string{"container → container and outside, rr", "bridge :out", "veth·b",
				"Every row was witnessed"}},
		{"no-right", "path host --from remote-container --peer plain@" + there, 3,
			[]string{"may not use the Docker daemon's socket",
				"toll: hint: --peer-sudo; or ssh as root"}},
		{"compared",
			"compare host publish publish-default macvlan-bridge --from " +
				"remote,remote-container --peer " + there +
				" --load rr --rounds 1 --window 300ms --quiet --details", 0,
			[]string{"·MASQ·wire·DNAT·b", "  wire·DNAT·b", "macvlan·wire·macvlan",
				"Every row was witnessed"}},
	}...) {
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
			if left := made("a", p.docker) + made("b", far); left != "" {
				t.Errorf("something is left: %s", left)
			}
		})
	}
	t.Run("outward-conformance", func(t *testing.T) {
		swarm := func(command string) {
			cmd := p.on("a", "sh", "-c", command)
			cmd.Env = append(cmd.Env, "DOCKER_HOST="+p.docker)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %s%v", command, out, err)
			}
		}
		swarm("docker swarm init --advertise-addr 10.78.0.1")
		cmd := p.on("a", pathtest.StaticSelf(t), "-test.run", "^TestOutward$", "-test.v")
		cmd.Env = append(cmd.Env, outwardEnv+"=1", "DOCKER_HOST="+p.docker,
			"XDG_STATE_HOME="+p.dir+"/state")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s%v", out, err)
		} else {
			t.Logf("%s", out)
		}
		swarm("docker swarm leave --force && docker network rm docker_gwbridge")
		p.nothingLeft(t)
		if left := made("a", p.docker) + made("b", far); left != "" {
			t.Errorf("something is left: %s", left)
		}
	})
	t.Run("killed", func(t *testing.T) {
		cmd := p.measuring(t, "compare", "publish", "--from", "remote-container", "--baseline",
			"publish")
		p.kill(t, "a", "toll compare publish --from")
		_ = cmd.Wait()
		p.nothingLeft(t)
		testwait.Until(t, time.Minute, "nothing is left at the peer's engine", func() bool {
			return made("b", far) == ""
		})
	})
	if e.Root() != "" {
		t.Run("agent-killed", func(t *testing.T) { p.routeLeft(t) })
	}
}

// The next clean must remove only the killed agent's route.
func (p *pair) routeLeft(t *testing.T) {
	routes := func() string {
		out, err := p.on("b", "ip", "route", "show", "proto", "116").Output()
		if err != nil {
			t.Error(err)
		}
		return string(out)
	}
	if out, err := p.on("b", "ip", "route", "add", "203.0.113.0/24", "via", "10.78.0.1").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := p.measuring(t, "compare", "routed", "--from", "remote", "--baseline", "routed")
	laid := routes()
	p.kill(t, "b", "toll agent --stdio bridgetoll-")
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); laid == "" || code == 0 ||
		!strings.Contains(said(cmd), "peer "+there+" left") {
		t.Errorf("routes %q, exit code %d: %s", laid, code, said(cmd))
	}
	if routes() != laid {
		t.Errorf("who removed %q?", laid)
	}
	clean := p.on("b", pathtest.Toll(t), "clean")
	clean.Env = append(clean.Env, "HOME=/root", "DOCKER_HOST=unix://"+p.dir+"/there.sock")
	if out, err := clean.CombinedOutput(); err != nil || routes() != "" {
		t.Errorf("%v: %s; routes %q", err, out, routes())
	}
	if out, _ := p.on("b", "ip", "route", "show", "203.0.113.0/24").Output(); len(out) == 0 {
		t.Error("a route of the user's is gone")
	}
	// the killed agent made it
	if out, err := p.on("b", "sh", "-c", "cd /root && rmdir -p .local/state/bridgetoll").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	p.nothingLeft(t)
}

// daemon starts a Docker Engine on a machine, which ends with it, and returns its host.
func (p *pair) daemon(t *testing.T, machine, name string) string {
	t.Helper()
	host := "unix://" + p.dir + "/" + name + ".sock"
	log, err := os.Create(filepath.Join(p.dir, name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	data := p.dir + "/data-" + name
	d := p.on(machine, "sh", "-ec",
		`mkdir "$0"; mount -t tmpfs tmpfs "$0"; exec dockerd --data-root "$0" "$@"`, data,
		"--exec-root", p.dir+"/exec-"+name, "--pidfile", p.dir+"/"+name+".pid", "-H", host)
	d.Stdout, d.Stderr = log, log
	d.Env = append(d.Env, "PATH="+p.dir+"/engine/usr/sbin:"+p.dir+"/engine/usr/bin:"+os.Getenv(
		"PATH"))
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // dockerd itself ends with its machine
		_ = d.Process.Kill()
		_ = d.Wait()
		if said, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("dockerd on %s: %s", machine, said)
		}
		log.Close()
	})
	testwait.Until(t, time.Minute, "dockerd answers", func() bool {
		return p.on(machine, "docker", "-H", host, "version").Run() == nil
	})
	return host
}

// All machines' processes are in one PID namespace.
func (p *pair) processes(machine, like string) (string, error) {
	pid, err := os.ReadFile(filepath.Join(p.dir, machine+".pid"))
	if err != nil {
		return "", err
	}
	out, err := p.on(machine, "pgrep", "--ns", strings.TrimSpace(string(pid)), "--nslist", "net",
		"-f", like).Output()
	return string(out), err
}

func (p *pair) kill(t *testing.T, machine, like string) {
	t.Helper()
	out, err := p.processes(machine, "^/[^ ]*"+like)
	if err != nil {
		t.Fatalf("no process is like %s: %v", like, err)
	}
	if out, err := p.on(machine, append([]string{"kill", "-KILL"}, strings.Fields(out)...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func (p *pair) begin(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := p.on("a", append([]string{pathtest.Toll(t)}, args...)...)
	cmd.Env = append(cmd.Env, "DOCKER_HOST="+p.docker, "XDG_STATE_HOME="+p.dir+"/state")
	said := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

func (p *pair) measuring(t *testing.T, command ...string) *exec.Cmd {
	t.Helper()
	cmd := p.begin(t, append(command, "--peer", there, "--budget", "10m", "--load", "rr",
		"--quiet")...)
	testwait.Until(t, time.Minute, "the client's process is on the peer", func() bool {
		out, _ := p.on("b", "pgrep", "-f", "toll worker").Output()
		return len(out) > 0
	})
	return cmd
}

func said(cmd *exec.Cmd) string { return cmd.Stdout.(*bytes.Buffer).String() }
