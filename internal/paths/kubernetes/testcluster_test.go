package kubernetes

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testversions"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// make test-kubernetes sets these; test/kubernetes/cluster does what no API can.
const (
	kubeconfigEnv = "BRIDGETOLL_TEST_KUBECONFIG"
	clusterEnv    = "BRIDGETOLL_TEST_CLUSTER"
	programsEnv   = "BIN" // the program's directory
)

// testPatience is long: two cores run a control plane and two nodes.
const testPatience = 2 * time.Minute

// testCluster has the nodes n1 and n2, with this process in their network.
type testCluster struct{ kubeconfig, program, toll string }

func newTestCluster(t *testing.T) *testCluster {
	t.Helper()
	c := &testCluster{os.Getenv(kubeconfigEnv), os.Getenv(clusterEnv), ""}
	if c.kubeconfig == "" || c.program == "" {
		t.Skip("make test-kubernetes has a cluster for it")
	}
	c.toll = pathtest.Toll(t)
	version, _ := c.try("kubectl", "version")
	_, server, _ := strings.Cut(version, "Server Version")
	const what = "modes, mesh"
	testversions.Ran(t, "Kubernetes", testversions.In(server), what)
	testversions.Ran(t, "kube-proxy", testversions.Of(
		filepath.Join(os.Getenv(programsEnv), "kube-proxy"), "--version"), what)
	testversions.Ran(t, "containerd", testversions.Of("containerd", "--version"), what)
	t.Cleanup(func() { _ = os.RemoveAll(stateOf(t)) })
	return c
}

func (c *testCluster) do(t testing.TB, args ...string) string {
	t.Helper()
	out, err := c.try(args...)
	if err != nil {
		t.Fatalf("cluster %q: %v\n%s", args, err, out)
	}
	return out
}

func (c *testCluster) try(args ...string) (string, error) {
	var out, errOut bytes.Buffer
	cmd := exec.Command(c.program, args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if err != nil {
		return out.String() + errOut.String(), err
	}
	return out.String(), nil
}

func (c *testCluster) kubectl(t testing.TB, args ...string) string {
	t.Helper()
	return c.do(t, append([]string{"kubectl"}, args...)...)
}

func (c *testCluster) apply(t testing.TB, manifest string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	c.kubectl(t, "apply", "-f", file)
}

func (c *testCluster) give(t testing.TB, program string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image.tar")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(program, "image")
	cmd.Stdout = out
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	c.do(t, "import", file)
}

// account returns a kubeconfig of the service account alone.
func (c *testCluster) account(t testing.TB, namespace string, args ...string) (kubeconfig string) {
	t.Helper()
	code, manifest, errOut := c.run(t, "", append(
		[]string{"kubernetes", "manifest", "--namespace", namespace}, args...)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	c.apply(t, manifest)
	t.Cleanup(func() {
		c.kubectl(t, "delete", "namespace", namespace, "--wait=true")
		c.kubectl(t, "delete", "--ignore-not-found", "clusterrole,clusterrolebinding",
			namespace+":toll")
	})
	// made by the cluster in each new namespace
	for _, made := range []string{"serviceaccount/default", "configmap/kube-root-ca.crt"} {
		if !testwait.Met(testPatience, func() bool {
			_, err := c.try("kubectl", "-n", namespace, "get", made)
			return err == nil
		}) {
			t.Fatalf("namespace %s gets no %s", namespace, made)
		}
	}
	return c.as(t, namespace, strings.TrimSpace(
		c.kubectl(t, "-n", namespace, "create", "token", "toll")))
}

func (c *testCluster) as(t testing.TB, namespace, token string) string {
	t.Helper()
	text, err := os.ReadFile(c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	was := string(text)
	i := strings.Index(was, "token: ")
	if i < 0 {
		t.Fatalf("no token in %s", c.kubeconfig)
	}
	rest := was[i:]
	now := was[:i] + "token: " + token + rest[strings.Index(rest, "}"):]
	now = strings.Replace(now, "user: user}", "user: user, namespace: "+namespace+"}", 1)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(now), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func (c *testCluster) run(t testing.TB, kubeconfig string, args ...string) (code int,
	out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	cmd := c.command(t, kubeconfig, args...)
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

func (c *testCluster) command(t testing.TB, kubeconfig string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(c.toll, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "XDG_STATE_HOME="+stateOf(t),
		"TOLL_HISTORY=off", "TOLL_BUSY=yes", "CI=true")
	return cmd
}

func stateOf(t testing.TB) string {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	return filepath.Join(os.TempDir(), fmt.Sprintf("bridgetoll-%s-%d", name, os.Getpid()))
}

// objects omits the cluster's own changing objects.
func (c *testCluster) objects(t testing.TB) string {
	t.Helper()
	kinds := strings.Fields(c.kubectl(t, "api-resources", "--verbs=list", "-o", "name"))
	var lasting []string
	for _, k := range kinds {
		switch k {
		case "events", "events.events.k8s.io", "leases.coordination.k8s.io", "componentstatuses":
		default:
			lasting = append(lasting, k)
		}
	}
	return c.kubectl(t, "get", strings.Join(lasting, ","), "-A", "--no-headers", "-o",
		`jsonpath={range `+
			`.items[*]}{.kind}/{.metadata.namespace}/{.metadata.name}/{.metadata.uid}{"\n"}{end}`)
}

// isAs compares the state directory, too.
func (c *testCluster) isAs(t testing.TB, before, after string) {
	t.Helper()
	now := ""
	if !testwait.Met(testPatience, func() bool { now = c.objects(t); return now == before }) {
		t.Errorf("after %s, something is left:\n%s\nbefore:\n%s", after, now, before)
	}
	if left, _ := filepath.Glob(filepath.Join(stateOf(t), "bridgetoll", "*")); len(left) > 0 {
		t.Errorf("after %s, there are %q", after, left)
	}
}

type measurement struct {
	cmd  *exec.Cmd
	file string
	said bytes.Buffer
	over chan struct{}
}

// start waits for the given number of visits.
func (c *testCluster) start(t testing.TB, kubeconfig string, visits int,
	args ...string) *measurement {
	t.Helper()
	m := &measurement{file: filepath.Join(t.TempDir(), "run.jsonl"), over: make(chan struct{})}
	m.cmd = c.command(t, kubeconfig, append(args, "--save", m.file)...)
	m.cmd.Stdout, m.cmd.Stderr = &m.said, &m.said
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = m.cmd.Wait(); close(m.over) }()
	t.Cleanup(func() {
		_ = m.cmd.Process.Kill()
		<-m.over
	})
	if !testwait.Met(testPatience, func() bool {
		return m.visits() >= visits || m.ended()
	}) || m.ended() {
		_ = m.cmd.Process.Kill()
		<-m.over
		t.Fatalf("it measures nothing:\n%s", &m.said)
	}
	return m
}

func (m *measurement) visits() int {
	text, _ := os.ReadFile(m.file)
	return max(0, bytes.Count(text, []byte("\n"))-1) // the first line is the plan
}

func (m *measurement) ended() bool {
	select {
	case <-m.over:
		return true
	default:
		return false
	}
}

func (m *measurement) ends(t testing.TB) (code int, said string) {
	t.Helper()
	select {
	case <-m.over:
	case <-time.After(testPatience):
		_ = m.cmd.Process.Kill()
		<-m.over
		t.Fatalf("it does not end:\n%s", &m.said)
	}
	return m.cmd.ProcessState.ExitCode(), strings.Join(strings.Fields(m.said.String()), " ")
}
