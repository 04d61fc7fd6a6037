package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/measure/observe"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
)

// modelArg makes this binary serve a language model at an address.
const modelArg = "model"

func model() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"data":[{"id":"tiny"}]}`)
	})
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		const pause = 20 * time.Millisecond
		for range 2 {
			time.Sleep(pause)
			_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"word\"}}]}\n\n")
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	})
	return mux
}

// observed is a cluster with a server's pod "llm" on node b, which takes no pods.
func observed(t *testing.T) (*apiserver, *Kubernetes) {
	s := newAPIServer(t, "a", "b")
	s.nodes[1].Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	meta := metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
	s.pods["llm"] = &corev1.Pod{TypeMeta: meta, Spec: corev1.PodSpec{NodeName: "b"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	s.pods["new"] = &corev1.Pod{TypeMeta: meta, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	s.exec = func(_ string, command []string, in io.Reader, out, errOut io.Writer) error {
		cmd := exec.Command(executable(t), command[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = in, out, errOut, time.Second
		return cmd.Run()
	}
	k := &Kubernetes{Pods: cluster.Pods{Access: s.access(), Version: testVersion,
		Image: "example.org/toll", Server: "llm"}, StateDir: t.TempDir()}
	return s, k
}

func TestObserver(t *testing.T) {
	s, k := observed(t)
	var made *corev1.Pod
	s.place = func(p *corev1.Pod) {
		s.run(p)
		made = p
	}
	defer func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
		if names := s.names(); strings.Join(names, " ") != "llm new" {
			t.Errorf("left: %q", names)
		}
	}()
	a, err := k.Observer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if a.Name() != "node b" {
		t.Errorf("its name is %q", a.Name())
	}
	if again, err := k.Observer(t.Context()); again != a || err != nil {
		t.Errorf("the second time: %v, %v", again, err)
	}
	if made.Spec.NodeName != "b" || !made.Spec.HostPID || !made.Spec.HostNetwork ||
		len(made.Spec.Tolerations) != 1 || !*made.Spec.Containers[0].SecurityContext.Privileged {
		t.Errorf("%+v", made.Spec)
	}
	p, err := a.Start(path.Command{Args: []string{observe.Arg}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(p.In, `{"more": true}`+"\n"); err != nil {
		t.Fatal(err)
	}
	var answer any
	if err := json.NewDecoder(p.Out).Decode(&answer); err != nil {
		t.Errorf("an observer answers: %v", err)
	}
	if err := errors.Join(p.In.Close(), p.Wait()); err != nil {
		t.Error(err)
	}
}

// asToll is set in processes of this binary that are toll.
const asToll = "BRIDGETOLL_TEST_AS_TOLL"

// TestObserverSeesTokens asks a server in a pod, in a network namespace that only toll on its node
// sees.
func TestObserverSeesTokens(t *testing.T) {
	if !inNamespaces(t) {
		return
	}
	shell(t, `ip link set lo up; ip netns add llm
		ip link add w type veth peer name eth0 netns llm
		ip addr add 10.9.0.1/24 dev w; ip link set w up
		ip -n llm addr add 10.9.0.2/24 dev eth0; ip -n llm link set eth0 up`)
	server := exec.Command("ip", "netns", "exec", "llm", executable(t), modelArg, ":8000")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = server.Process.Kill(), server.Wait() }()
	testwait.Until(t, time.Minute, "the server listens", func() bool {
		c, err := net.Dial("tcp", "10.9.0.2:8000")
		return err == nil && c.Close() == nil
	})
	s, _ := observed(t)
	s.exec = func(_ string, command []string, in io.Reader, out, errOut io.Writer) error {
		cmd := exec.Command(executable(t), command[1:]...)
		cmd.Env = append(os.Environ(), asToll+"=1")
		cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = in, out, errOut, time.Second
		return cmd.Run()
	}
	cmd := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
		"sh", "-c", `umount -l /run/netns/*; exec "$@"`, "sh", executable(t), "stream",
		"llm=http://10.9.0.2:8000", "--pod", "llm", "--kubeconfig", s.access().Kubeconfig,
		"--image", "example.org/toll", "--rounds", "3", "--details")
	cmd.Env = append(os.Environ(), asToll+"=1", "XDG_STATE_HOME="+t.TempDir(), "TOLL_HISTORY=off",
		"TOLL_BUSY=yes", "DOCKER_HOST=")
	out, err := cmd.CombinedOutput()
	words := strings.Join(strings.Fields(string(out)), " ")
	for _, w := range []string{"Neither, over llm: of ", " at port 8000 of node b) on: 6 of 6 " +
		"tokens",
		"the server's listen queue did not overflow"} {
		if !strings.Contains(words, w) {
			t.Errorf("%q is missing", w)
		}
	}
	if err != nil || t.Failed() {
		t.Errorf("%v\n%s", err, out)
	}
	if names := s.names(); strings.Join(names, " ") != "llm new" {
		t.Errorf("left: %q", names)
	}
}

func executable(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

func TestObserverRefused(t *testing.T) {
	forbids := func(kind string, why func(asking) string) func(*apiserver) {
		return func(s *apiserver) {
			s.instead = func(w http.ResponseWriter, r *http.Request, a asking) bool {
				_, in, _ := parse(r)
				if words := why(a); a.kind == kind && (words != "" || in == "other") {
					e := forbidden(a)
					if words != "" {
						e.ErrStatus.Message = words
					}
					reply(w, e)
					return true
				}
				return false
			}
		}
	}
	for name, tt := range map[string]struct {
		pod          string
		given        func(*apiserver)
		says, remedy string
	}{
		"no-such-pod": {"none", nil, "the namespace measured has no pod none",
			"--pod NAMESPACE/POD: kubectl get pods --all-namespaces lists them"},
		"pending": {"new", nil, "the pod new does not run: it is pending",
			"kubectl -n measured describe pod new"},
		"pod-security": {"llm", forbids(pods, func(a asking) string {
			if a.verb == "create" {
				return `pods "p" is forbidden: violates PodSecurity "baseline:latest": privileged`
			}
			return ""
		}), `the namespace measured forbids the pod (Pod Security): pods "p" is forbidden: ` +
			`violates PodSecurity "baseline:latest": privileged`,
			"--namespace with one that admits privileged pods; or permit it: kubectl " +
				"label namespace measured pod-security.kubernetes.io/enforce=privileged"},
		"other-namespace": {"other/llm", forbids(pods, func(asking) string { return "" }),
			`you may not get pods in namespace other (403): pods is forbidden: User "u" cannot ` +
				`get resource "pods" in API group "" in the namespace "measured"`,
			"ask for a role that may get pods there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, k := observed(t)
			k.Server = tt.pod
			if tt.given != nil {
				tt.given(s)
			}
			_, err := k.Observer(t.Context())
			var u *machine.UnsupportedError
			if !errors.As(err, &u) || u.Missing != tt.says {
				t.Errorf("%v", err)
			}
			if hint.Of(err) != tt.remedy {
				t.Errorf("hint %q, want %q", hint.Of(err), tt.remedy)
			}
			if err := k.Close(); err != nil {
				t.Error(err)
			}
			if names := s.names(); strings.Join(names, " ") != "llm new" {
				t.Errorf("left: %q", names)
			}
		})
	}
}

// TestClusterStream asks a server in a pod from outside of the cluster, without sight of its
// processes and namespaces.
func TestClusterStream(t *testing.T) {
	c := newTestCluster(t)
	c.give(t, "/proc/self/exe")
	c.give(t, c.toll)
	image, _, err := dockerapi.Archive("", dockerapi.NodeRepository)
	if err != nil {
		t.Fatal(err)
	}
	me := c.account(t, "streamed")
	c.apply(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: llm, namespace: streamed},
		spec: {nodeName: n2, automountServiceAccountToken: false, containers: [{name: llm, image: %q,
		imagePullPolicy: Never, command: [%q, %s, ":8000"]}]}}`, image, dockerapi.InImage, modelArg))
	c.kubectl(t, "-n", "streamed", "wait", "--for=condition=Ready", "pod/llm", "--timeout=60s")
	at := c.kubectl(t, "-n", "streamed", "get", "pod", "llm", "-o", "jsonpath={.status.podIP}")
	before := c.objects(t)
	ask := c.command(t, me, "stream", "llm=http://"+at+":8000", "--pod", "llm", "--rounds", "3",
		"--details")
	cmd := exec.Command("unshare", append([]string{"-m", "-p", "-f", "--mount-proc", "sh", "-c",
		`umount -l /run/netns/*; exec "$@"`, "sh"}, ask.Args...)...)
	cmd.Env = ask.Env
	out, err := cmd.CombinedOutput()
	words := strings.Join(strings.Fields(string(out)), " ")
	for _, w := range []string{"Neither, over llm: of ", " at port 8000 of node n2) on: ",
		"the server's listen queue did not overflow"} {
		if !strings.Contains(words, w) {
			t.Errorf("%q is missing", w)
		}
	}
	if err != nil || t.Failed() || os.Getenv("TOLL_TEST_SHOW") != "" {
		t.Errorf("%v\n%s", err, out)
	}
	c.isAs(t, before, "a stream")
}
