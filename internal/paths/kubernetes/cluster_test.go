package kubernetes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/cli"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/measure/observe"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

const testVersion = "test"

// TestMain is also the program in the test's image: an agent with workers.
func TestMain(m *testing.M) {
	pathtest.Main()
	if os.Getenv(asToll) != "" {
		os.Exit(cli.Main(Backend()))
	}
	if ours, err := Inner(os.Args[1:]); ours {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 2 && os.Args[1] == agent.Arg {
		if err := asAgent(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == observe.Arg {
		if observe.Serve(os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 2 && os.Args[1] == modelArg {
		fmt.Fprintln(os.Stderr, http.ListenAndServe(os.Args[2], model()))
		os.Exit(1)
	}
	if len(os.Args) > 1 && os.Args[1] == "image" {
		_, archive, err := dockerapi.PackedArchive("", dockerapi.NodeRepository)
		if err == nil {
			_, err = os.Stdout.Write(archive)
		}
		if err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	pathtest.RemoveToll()
	os.Exit(code)
}

func asAgent(how, value string) error {
	if how == "--sit" {
		d, err := time.ParseDuration(value)
		if err != nil {
			return err
		}
		return agent.Sit(context.Background(), d)
	}
	fmt.Printf("\n%s agent\n", value)
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	length, name, _ := strings.Cut(strings.TrimSpace(line), " ")
	n, err := strconv.Atoi(length)
	if err != nil {
		return err
	}
	c := agent.Config{Bundle: make([]byte, n), ID: value, Name: name, Version: testVersion,
		Starts: []string{pathtest.Arg, observe.Arg}}
	if _, err := io.ReadFull(in, c.Bundle); err != nil {
		return err
	}
	carrier, err := agent.AtAgent(struct {
		io.Reader
		io.WriteCloser
	}{in, os.Stdout})
	if err != nil {
		return err
	}
	c.Open = carrier.Open
	return agent.Main(context.Background(), c)
}

func TestClusterConformance(t *testing.T) {
	c := newTestCluster(t)
	c.give(t, "/proc/self/exe")
	before := c.objects(t)
	k := &Kubernetes{Pods: cluster.Pods{Access: cluster.Access{Kubeconfig: c.kubeconfig},
		Nodes: []string{"n1", "n2"}, Version: testVersion}, StateDir: t.TempDir()}
	t.Cleanup(func() { // runs after Fatal, too: what is left would fail the other tests
		if err := k.Close(); err != nil {
			t.Error(err)
		}
		c.isAs(t, before, "the conformance suite")
	})
	// The pods and their agents stay for the whole run.
	for name := range recipes {
		m, _ := mode.Find(name)
		for _, r := range m.Routes {
			if err := k.Check(t.Context(), path.Spec{Mode: name, From: r.From, To: r.To}); err != nil && !lacks(err) {
				t.Fatalf("%s from %s to %s: %v", name, r.From, r.To, err)
			}
		}
	}
	for name := range recipes {
		m, ok := mode.Find(name)
		if !ok {
			t.Errorf("the catalogue has no %s", name)
			continue
		}
		pathtest.Run(t, k, pathtest.Options{
			Modes: []mode.Mode{m}, Short: true,
			Common: func(path.Hop) bool { return true }, // all paths of a mode have the same pods
			Lacks:  func(u *machine.UnsupportedError) bool { return lacks(u) },
			Around: func(t *testing.T, p *path.Path) (pathtest.Traffic, bool) {
				return around(t, k, p)
			},
		})
	}
}

func lacks(err error) bool {
	var u *machine.UnsupportedError
	return errors.As(err, &u) && u.Lack == machine.LackIPv6
}

// around dials the pod's own address instead of a service's or a port's, and the nodes instead of
// pods.
func around(t *testing.T, k *Kubernetes, p *path.Path) (pathtest.Traffic, bool) {
	t.Helper()
	other := path.Spec{Mode: mode.Pod, From: p.Spec.From, To: mode.ToContainer}
	switch p.Spec.Mode {
	case mode.Host, mode.Shared:
		return pathtest.Traffic{}, false
	case mode.Pod, mode.Headless:
		other = path.Spec{Mode: mode.Host, From: mode.FromRemote, To: mode.ToAddress}
	}
	b, err := k.Build(context.Background(), other)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	return pathtest.Exchange(t, b), true
}

// narrow returns a report's words, with its paths as a wide table shortens them.
func narrow(report string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(report), " "), "·bridge·", "·br·")
}

func TestClusterCompare(t *testing.T) {
	c := newTestCluster(t)
	c.give(t, c.toll)
	before := c.objects(t)
	t.Run("account", func(t *testing.T) {
		me := c.account(t, "measured")
		was := c.objects(t)
		code, out, errOut := c.run(t, me, "compare", "host", "pod", "clusterip", "hostport",
			"nodeport", "nodeport-local", "--on", "kubernetes",
			"--nodes", "n1,n2", "--rounds", "1", "--window", "50ms", "--details")
		if words := strings.Join(strings.Fields(out), " "); code != 0 && code != 4 ||
			strings.Contains(words, ": build ") || strings.Contains(words, "not witnessed") ||
			!strings.Contains(words, "nodeport-local") {
			t.Errorf("exit %d:\n%s%s", code, out, errOut)
		}
		c.isAs(t, was, "a comparison")
	})
	t.Run("outside", func(t *testing.T) {
		for _, tt := range []struct{ nodes, path, says string }{
			{"n1", "nodeport-local wire·DNAT·br·veth", "nodeport wire·DNAT·MASQ·br·veth"},
			{"n1,n2", "nodeport wire·DNAT·MASQ·wire·br·veth", "node n2 has no endpoint"},
		} {
			code, out, errOut := c.run(t, c.kubeconfig, "compare", "nodeport", "nodeport-local",
				"--on", "kubernetes", "--outside",
				"--nodes", tt.nodes, "--rounds", "1", "--window", "50ms", "--details")
			words := narrow(out)
			if code != 0 && code != 4 || strings.Contains(words, "not witnessed") ||
				!strings.Contains(words, tt.path) || !strings.Contains(words, tt.says) {
				t.Errorf("exit %d:\n%s%s", code, out, errOut)
			}
		}
	})
	t.Run("way-out", func(t *testing.T) {
		// What flannel's and kindnet's daemons add on each node; the plug-in here adds nothing.
		const table = "table ip outward"
		for _, tt := range []struct{ rules, path string }{
			{"", "pod :out veth·br·wire"},
			{"add " + table + "; add chain ip outward p { type nat hook postrouting " +
				"priority 100; }; " +
				"add rule ip outward p ip saddr 10.244.0.0/16 ip daddr != 10.244.0.0/16 masquerade",
				"pod :out veth·br·MASQ·wire"},
		} {
			if tt.rules != "" {
				c.do(t, "node", "n2", "nft", tt.rules)
				defer c.do(t, "node", "n2", "nft", "delete "+table)
			}
			code, out, errOut := c.run(t, c.kubeconfig, "compare", "pod", "--on", "kubernetes",
				"--to", "outside", "--nodes", "n1,n2", "--rounds", "1", "--window", "50ms",
				"--details")
			words := narrow(out)
			if code != 0 && code != 4 || strings.Contains(words, "not witnessed") ||
				!strings.Contains(words, tt.path) {
				t.Errorf("exit %d, want %s:\n%s%s", code, tt.path, out, errOut)
			}
		}
	})
	t.Run("only-these-nodes", func(t *testing.T) {
		me := c.account(t, "measured-nodes", "--nodes", "n1,n2")
		if code, out, errOut := c.run(t, me, "compare", "pod", "--on", "kubernetes", "--nodes", "n1,n2", "--rounds", "1", "--window", "50ms"); code != 0 && code != 4 {
			t.Errorf("exit %d:\n%s%s", code, out, errOut)
		}
		if code, _, errOut := c.run(t, me, "compare", "pod", "--on", "kubernetes", "--rounds", "1"); code != 3 || !strings.Contains(errOut, "list nodes") {
			t.Errorf("exit %d: %s", code, errOut)
		}
	})
	t.Run("unprivileged", func(t *testing.T) {
		me := c.account(t, "restricted", "--unprivileged")
		was := c.objects(t)
		code, _, errOut := c.run(t, me, "compare", "pod", "clusterip", "--on", "kubernetes",
			"--rounds", "1", "--window", "50ms")
		if code != 3 || !strings.Contains(errOut, "Pod Security") ||
			!strings.Contains(errOut, "--unprivileged") {
			t.Errorf("exit %d: %s", code, errOut)
		}
		c.isAs(t, was, "a refusal")
		code, out, errOut := c.run(t, me, "compare", "pod", "clusterip", "--on", "kubernetes",
			"--unprivileged", "--baseline", "pod", "--rounds", "1", "--window", "50ms", "--details")
		// the pods' own devices
		if code != 0 && code != 4 || !strings.Contains(strings.Join(strings.Fields(out), " "),
			"pod veth·veth") {
			t.Errorf("exit %d:\n%s%s", code, out, errOut)
		}
		c.isAs(t, was, "an unprivileged comparison")
	})
	c.isAs(t, before, "all of them")
}

// Two nodes of two sweeps are too few to name a fault.
func TestClusterMesh(t *testing.T) {
	c := newTestCluster(t)
	c.give(t, c.toll)
	was := c.objects(t)
	want := []string{
		`pod network, µs rr, 1 byte each way n2 n1 [\d.]+ Round`,
		`host network, µs rr, 1 byte each way n2 n1 [\d.]+ What`,
		`link pod host pod/host verdict n1 – n2 [\d.]+ [\d.]+ \d+ % \([^)]+\) Typical`,
		`Every visit was witnessed`,
		`What the CNI costs between n1 and n2: round trips take \d+ % \([^)]+\) of the time on ` +
			`the host network`,
		`With one pair of nodes there is nothing to compare round trips with`,
		`n1 and n2 are the same machine`,
	}
	c.says(t, want, "mesh", "--on", "kubernetes", "--rounds", "2", "--load", "rr", "--window",
		"100ms")
	c.isAs(t, was, "a mesh")
}

func TestClusterBesideLab(t *testing.T) {
	c := newTestCluster(t)
	c.give(t, c.toll)
	was := c.objects(t)
	want := []string{`every row was witnessed`}
	for _, on := range []string{"lab", "kubernetes"} {
		for _, from := range []string{"another container", "a container on another machine"} {
			want = append(
				want,
				`Median latency from `+from+` on `+on+`, rr.* host --network host .* baseline `+
					`pod pod IP .* (better|same|unclear|worse)`)
		}
	}
	for _, m := range []string{"host", "pod"} {
		want = append(
			want,
			m+` on kubernetes, from another container: \d+ % \([^)]+\) of the lab's median latency`)
	}
	c.says(t, want, "compare", "host", "pod", "--on", "lab,kubernetes", "--nodes", "n1,n2",
		"--from", "container,remote-container",
		"--rounds", "5", "--load", "rr", "--window", "50ms")
	c.isAs(t, was, "a comparison with the lab")
}

func (c *testCluster) says(t *testing.T, patterns []string, args ...string) {
	t.Helper()
	code, out, errOut := c.run(t, c.kubeconfig, args...)
	words := strings.Join(strings.Fields(out), " ")
	for _, p := range patterns {
		if !regexp.MustCompile(p).MatchString(words) {
			t.Errorf("not said: %s", p)
		}
	}
	if code != 0 || t.Failed() {
		t.Errorf("exit %d:\n%s%s", code, out, errOut)
	}
}

func TestClusterRefuses(t *testing.T) {
	c := newTestCluster(t)
	measure := []string{"compare", "pod", "--on", "kubernetes", "--baseline", "pod", "--from",
		"remote-container", "--nodes", "n1,n2", "--rounds", "1", "--window", "50ms"}
	t.Run("image", func(t *testing.T) {
		me := c.account(t, "no-image")
		code, _, errOut := c.run(t, me, append(measure, "--image", "127.0.0.1:1/none:1")...)
		if code != 3 || !strings.Contains(errOut, "cannot get the image") ||
			!strings.Contains(errOut, "127.0.0.1:1/none:1") {
			t.Errorf("exit %d: %s", code, errOut)
		}
	})
	c.give(t, c.toll)
	me := c.account(t, "refusing")
	was := c.objects(t)
	for _, tt := range []struct {
		name       string
		as         func() string
		do, undo   func(t *testing.T)
		want, hint string
	}{
		{"token", func() string { return c.as(t, "refusing", "wrong") }, nil, nil, "401", "log in"},
		{"rbac", nil, func(t *testing.T) {
			c.kubectl(t, "-n", "refusing", "patch", "role", "toll", "--type=json",
				`-p=[{"op": "remove", "path": "/rules/1"}]`)
		}, func(t *testing.T) { c.again(t, "refusing") }, "pods/exec", "toll kubernetes manifest"},
		{"quota", nil, func(t *testing.T) {
			c.kubectl(t, "-n", "refusing", "create", "quota", "q", "--hard=pods=1")
		},
			func(t *testing.T) {
				c.kubectl(t, "-n", "refusing", "delete", "quota", "q")
			}, "quota", "--namespace"},
		{"cordoned", nil, func(t *testing.T) {
			c.kubectl(t, "cordon", "n2")
		}, func(t *testing.T) {
			c.kubectl(t, "uncordon", "n2")
		}, "node n2 is cordoned", "uncordon"},
		{"no-namespace", func() string {
			return c.as(t, "nowhere", "admin-token")
		}, nil, nil, "nowhere", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			as := me
			if tt.as != nil {
				as = tt.as()
			}
			if tt.do != nil {
				tt.do(t)
			}
			code, out, errOut := c.run(t, as, measure...)
			if tt.undo != nil {
				tt.undo(t)
			}
			if code != 3 && code != 1 || !strings.Contains(errOut, tt.want) ||
				!strings.Contains(errOut, tt.hint) {
				t.Errorf("exit %d, want %q with %q:\n%s%s", code, tt.want, tt.hint, out, errOut)
			}
			c.isAs(t, was, tt.name)
		})
	}
}

func (c *testCluster) again(t testing.TB, namespace string) {
	t.Helper()
	_, manifest, _ := c.run(t, "", "kubernetes", "manifest", "--namespace", namespace)
	c.apply(t, manifest)
}

// A run continues without what was lost, or keeps its results, and leaves only what it reports.
func TestClusterFaults(t *testing.T) {
	c := newTestCluster(t)
	c.give(t, c.toll)
	const rounds = 4 // before the fault: of three visits
	me := c.account(t, "faulty")
	was := c.objects(t)
	podsOf := func(t *testing.T, role string) []string {
		t.Helper()
		return strings.Fields(c.kubectl(t, "-n", "faulty", "get", "pods", "-l", roleLabel+"="+role,
			"-o", "name"))
	}
	for _, tt := range []struct {
		name     string
		do, undo func(t *testing.T)
		code     int
		want     []string
		left     bool // for toll clean, unless the kubelet was faster
	}{
		{"pod-deleted", func(t *testing.T) {
			c.kubectl(t, append([]string{"-n", "faulty", "delete", "--force", "--grace-period=0"},
				podsOf(t, string(calling))...)...)
		}, nil, 4, []string{`host --network host .* baseline`,
			`Failed pod .*: an end of its path was lost: node n2: its pod ` +
				`toll-\w+-client-\d+ was deleted`}, false},
		{"drained", func(t *testing.T) {
			c.kubectl(t, "drain", "n2", "--force", "--ignore-daemonsets", "--grace-period=1")
		}, func(t *testing.T) { c.kubectl(t, "uncordon", "n2") }, 1, []string{
			`host(, pod)? from .*: an end of its path was lost: node n2: its pod toll-\S+ (was ` +
				`deleted|is being removed|was ended)`,
			`pod from .*: an end of its path was lost: node n2: its pod toll-\S+ (was ` +
				`deleted|is being removed|was ended)`, `Nothing was measured`,
			`no row has a result`}, false},
		{"kubelet-killed", func(t *testing.T) { c.do(t, "stop", "kubelet", "n2") },
			func(t *testing.T) {
				c.do(t, "start", "kubelet", "n2")
				if !testwait.Met(testPatience, func() bool {
					return c.kubectl(t, "get", "node", "n2", "-o",
						`jsonpath={.status.conditions[?(@.type=="Ready")].status}{.spec.taints}`) == "True"
				}) {
					t.Fatal("node n2 does not come back")
				}
			}, 1, []string{`host --network host .* baseline pod pod IP `,
				`error: the exec stream to pod toll-\S+ \((pod on )?node n2\) broke: the ` +
					`connection was cut .*; the API server answers and reports the pod as Running`,
				`left behind: pod toll-\S+ is still there: its node may be down`,
				`hint: once the API server and the nodes answer, toll clean removes what is left`},
			true},
		{"api-server-restarted", func(t *testing.T) { c.do(t, "stop", "apiserver") },
			func(t *testing.T) {
				c.do(t, "start", "apiserver")
				c.ready(t)
			}, 1, []string{`host --network host .* baseline pod pod IP `,
				`error: the exec stream to pod toll-\S+ \(.*node n[12]\) broke: the connection ` +
					`was cut .*; the API server at \S+ cannot be reached`,
				`left behind: remove pod toll-\S+: the API server at \S+ cannot be reached`,
				`hint: once the API server and the nodes answer, toll clean removes what is left`},
			true},
		{"traffic-blocked", func(t *testing.T) {
			c.do(
				t, "node", "n2", "nft",
				"add table ip blocks; add chain ip blocks f { type filter hook forward priority "+
					"0; }; add rule ip blocks f ip daddr 10.244.1.0/24 drop")
		}, func(t *testing.T) {
			c.do(t, "node", "n2", "nft", "delete table ip blocks")
		}, 4, []string{`host --network host .* baseline`, `Failed pod `}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := c.start(t, me, rounds*3, "compare", "host", "pod", "--on", "kubernetes", "--nodes",
				"n1,n2", "--from", "remote-container", "--budget", "15s", "--load", "rr", "--slice",
				"0s", "--window", "200ms")
			tt.do(t)
			code, said := m.ends(t)
			if tt.undo != nil {
				tt.undo(t)
			}
			t.Logf("exit %d: %s", code, said)
			if code != tt.code {
				t.Errorf("exit %d, want %d", code, tt.code)
			}
			for _, w := range tt.want {
				if !regexp.MustCompile(w).MatchString(said) {
					t.Errorf("not said: %s", w)
				}
			}
			if strings.Contains(said, "panic") || strings.Contains(said, "admin-token") {
				t.Errorf("%s", said)
			}
			if whole := (m.visits() - 1) / 3; tt.left &&
				!strings.Contains(said, fmt.Sprintf("%d rounds in ", whole)) {
				t.Errorf("not all of the %d rounds before it broke are reported", whole)
			}
			if left := strings.Contains(said, "left behind"); left != tt.left {
				t.Errorf("left behind: %v, want %v", left, tt.left)
			}
			if tt.left {
				code, out, errOut := c.run(t, me, "clean")
				if code != 0 || tt.name != "kubelet-killed" &&
					!strings.Contains(out, "removed pod faulty/toll-") {
					t.Errorf("clean: exit %d: %s%s", code, out, errOut)
				}
			}
			c.isAs(t, was, tt.name)
		})
	}
	t.Run("killed", func(t *testing.T) {
		m := c.start(t, me, 1, "compare", "host", "clusterip", "--on", "kubernetes", "--nodes",
			"n1,n2", "--budget", "60s")
		if err := m.cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-m.over
		code, out, errOut := c.run(t, me, "clean")
		if code != 0 || !strings.Contains(out, "removed pod faulty/toll-") ||
			!strings.Contains(out, "removed service faulty/toll-") {
			t.Errorf("exit %d: %s%s", code, out, errOut)
		}
		c.isAs(t, was, "SIGKILL and toll clean")
	})
	t.Run("interrupted", func(t *testing.T) {
		m := c.start(t, me, 1, "compare", "host", "clusterip", "--on", "kubernetes", "--nodes",
			"n1,n2", "--budget", "60s")
		if err := m.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if code, said := m.ends(t); code != 130 {
			t.Errorf("exit %d: %s", code, said)
		}
		c.isAs(t, was, "Ctrl-C")
	})
}

func (c *testCluster) ready(t testing.TB) {
	t.Helper()
	testwait.Until(t, time.Minute, "the API server is back", func() bool {
		out, err := c.try("kubectl", "get", "--raw", "/readyz")
		return err == nil && strings.TrimSpace(out) == "ok"
	})
}

func TestClusterPlugin(t *testing.T) {
	c := newTestCluster(t)
	c.give(t, c.toll)
	dir := t.TempDir()
	if err := os.Symlink(c.toll, dir+"/kubectl-toll"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("KUBECONFIG", c.kubeconfig)
	for _, tt := range []struct{ args, want string }{
		{"plugin list", dir + "/kubectl-toll"},
		{"toll version", "toll "},
		{"toll mesh --help", "kubectl toll mesh"},
		{"toll modes pod --nodes n1,n2", "pod"},
	} {
		cmd := exec.Command(os.Getenv(programsEnv)+"/kubectl", strings.Fields(tt.args)...)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), tt.want) {
			t.Errorf("kubectl %s: %v, want %q:\n%s", tt.args, err, tt.want, out)
		}
	}
}
