package kubernetes

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
)

func marks() (dead, elsewhere, alive string) {
	alive = journal.Mark()
	p := strings.Split(alive, "/")
	gone := slices.Clone(p)
	gone[1] = "another-boot"
	far := slices.Clone(p)
	far[0] = "another-machine"
	return strings.Join(gone, "/"), strings.Join(far, "/"), alive
}

// holding has a pod and a service of each owner, NAME-pod and NAME-service, and those of users.
func holding(t *testing.T, owners map[string]string) *apiserver {
	s := newAPIServer(t, "a")
	put := func(name string, meta metav1.ObjectMeta) {
		meta.Namespace = fakeNamespace
		pod, service := meta, meta
		pod.Name, service.Name = name+"-pod", name+"-service"
		s.pods[pod.Name] = &corev1.Pod{ObjectMeta: pod}
		s.services[service.Name] = &corev1.Service{ObjectMeta: service}
	}
	for name, mark := range owners {
		put(name, metav1.ObjectMeta{Labels: map[string]string{runLabel: name},
			Annotations: map[string]string{ownerAnnotation: mark}})
	}
	put("user's", metav1.ObjectMeta{Labels: map[string]string{"app": "shop"}})
	put("user's-so-called", metav1.ObjectMeta{Labels: map[string]string{runLabel: "dead"}})
	return s
}

func (s *apiserver) names() (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.pods {
		out = append(out, n)
	}
	for n := range s.services {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

func writeJournal(t *testing.T, dir string, s *apiserver, run, mark string) (file string) {
	t.Helper()
	a := s.access()
	j := Journal{Owner: mark, Run: run, Kubeconfig: a.Kubeconfig, Context: "fake", Server: s.URL,
		Namespace: fakeNamespace}
	f, err := j.write(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.close(false); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, run+cluster.JournalSuffix)
}

func TestClean(t *testing.T) {
	dead, elsewhere, alive := marks()
	owners := map[string]string{"dead": dead, "far": elsewhere, "alive": alive}
	kept := []string{"alive-pod", "alive-service", "user's-pod", "user's-service",
		"user's-so-called-pod", "user's-so-called-service"}
	for name, tt := range map[string]struct {
		others bool
		left   []string // besides kept
		told   int
	}{
		"own":    {false, []string{"far-pod", "far-service"}, 4},
		"others": {true, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := holding(t, owners)
			file := writeJournal(t, dir, s, "dead", dead)
			c := Clean{StateDir: dir, Others: tt.others}
			removed, err := c.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want := slices.Sorted(slices.Values(append(slices.Clone(kept), tt.left...)))
			if got := s.names(); !slices.Equal(got, want) {
				t.Errorf("left are %q, want %q", got, want)
			}
			if len(removed) != 10-len(want) || !slices.Contains(removed,
				"pod measured/dead-pod at "+s.URL) {
				t.Errorf("removed: %q", removed)
			}
			if len(c.Left) < tt.told {
				t.Errorf("left alone: %q", c.Left)
			}
			if _, err := os.Stat(file); err == nil {
				t.Error("the journal is still there")
			}
		})
	}
}

func TestCleanAsksNobody(t *testing.T) {
	s := newAPIServer(t, "a")
	s.instead = func(_ http.ResponseWriter, r *http.Request, _ asking) bool {
		t.Errorf("asked for %s", r.URL)
		return false
	}
	t.Setenv("KUBECONFIG", s.access().Kubeconfig)
	c := Clean{StateDir: t.TempDir()}
	if removed, err := c.Run(t.Context()); err != nil || len(removed) != 0 {
		t.Errorf("%q, %v", removed, err)
	}
}

func TestCleanThere(t *testing.T) {
	_, _, alive := marks()
	s := holding(t, map[string]string{"dead": alive + "9"}) // of another start of this PID
	c := Clean{StateDir: t.TempDir(), Access: s.access()}
	if removed, err := c.Run(t.Context()); err != nil || len(removed) != 2 || len(s.names()) != 4 {
		t.Errorf("%q, %v, left %q", removed, err, s.names())
	}
	c = Clean{StateDir: t.TempDir(), Access: cluster.Access{Kubeconfig: "/nowhere"}}
	if _, err := c.Run(t.Context()); err == nil || hint.Of(err) == "" {
		t.Errorf("%v, %s", err, hint.Of(err))
	}
}

// The run's $KUBECONFIG was a list of relative files. toll clean runs in another directory, without
// it.
func TestCleanFindsTheKubeconfig(t *testing.T) {
	dead, _, _ := marks()
	s, dir := holding(t, map[string]string{"dead": dead}), t.TempDir()
	other := kubeconfig(t, "https://192.0.2.9:6443", nil, "x").Kubeconfig
	t.Chdir(filepath.Dir(other))
	fake, err := filepath.Rel(filepath.Dir(other), s.access().Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	list := []string{fake, "kubeconfig", "missing"}
	t.Setenv("KUBECONFIG", strings.Join(list, string(filepath.ListSeparator)))
	r := &run{backend: &Kubernetes{StateDir: dir}, client: s.connect(), owner: dead, id: "dead"}
	r.client.Context = "fake"
	if err := r.owes(Object{Kind: pods, Name: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := r.journal.close(false); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	t.Setenv("KUBECONFIG", "")
	c := Clean{StateDir: dir}
	if removed, err := c.Run(t.Context()); err != nil || len(removed) != 2 || len(s.names()) != 4 {
		t.Errorf("%q, %v, left %q", removed, err, s.names())
	}
}

// It may be alive on a machine with the same ID.
func TestCleanOfAnotherBoot(t *testing.T) {
	dead, _, _ := marks()
	for _, tt := range []struct {
		listed, others bool
		left           int
	}{{false, false, 6}, {true, false, 4}, {false, true, 4}} {
		s, dir := holding(t, map[string]string{"dead": dead}), t.TempDir()
		if tt.listed {
			writeJournal(t, dir, s, "another-run", dead)
		}
		c := Clean{StateDir: dir, Access: s.access(), Others: tt.others}
		removed, err := c.Run(t.Context())
		if err != nil || len(s.names()) != tt.left || len(removed) != 6-tt.left {
			t.Errorf("%+v: %q, %v, left %q", tt, removed, err, s.names())
		}
		told := slices.ContainsFunc(c.Left, func(l cluster.Left) bool {
			return l.What == "pod measured/dead-pod at "+s.URL && l.Why == "of a toll before a "+
				"reboot of this "+
				"machine, or on another one with the same machine ID"
		})
		if told != (tt.left == 6) {
			t.Errorf("%+v: told %+v", tt, c.Left)
		}
	}
}

func TestCleanKeeps(t *testing.T) {
	dead, elsewhere, alive := marks()
	for name, tt := range map[string]struct {
		mark string
		with func(t *testing.T, s *apiserver, file string)
		err  string
		hint string
	}{
		"unreachable": {dead, func(_ *testing.T, s *apiserver, _ string) {
			s.Close()
		}, `journal "DIR/run.kubernetes": clean the namespace measured of ` +
			"https://127.0.0.1:PORT: the API server at https://127.0.0.1:PORT cannot be " +
			"reached (dial tcp 127.0.0.1:PORT: connect: connection refused)",
			"kubectl cluster-info; is the cluster up and reachable from here (VPN, " +
				"proxy)? --context chooses another one; if that cluster is gone for good, " +
				"remove the journal"},
		"forbidden": {dead, func(_ *testing.T, s *apiserver, _ string) {
			s.instead = func(w http.ResponseWriter, _ *http.Request, a asking) bool {
				if a.verb == "delete" {
					reply(w, forbidden(a))
				}
				return a.verb == "delete"
			}
		}, `journal "DIR/run.kubernetes": clean the namespace measured of ` +
			"https://127.0.0.1:PORT: remove pod run-pod: you may not delete pods in " +
			`namespace measured (403): pods is forbidden: User "u" cannot delete resource ` +
			"\"pods\" in API group \"\" in the namespace \"measured\"\nremove service " +
			"run-service: you may not delete services in namespace measured (403): services " +
			`is forbidden: User "u" cannot delete resource "services" in API group "" in the ` +
			`namespace "measured"`, "toll kubernetes manifest prints a role with the " +
			"permissions that toll " +
			"needs; if that cluster is gone for good, remove the journal"},
		"another-cluster": {dead, func(t *testing.T, _ *apiserver, file string) {
			change(t, file, func(j *Journal) { j.Server = "https://192.0.2.9:6443" })
		}, `journal "DIR/run.kubernetes": it ` +
			`lists objects at https://192.0.2.9:6443, but context "fake" now names ` +
			"https://127.0.0.1:PORT; toll does not look for them there",
			"toll clean again when the context names that cluster; or in that cluster " +
				"kubectl delete " +
				"pods,services --selector " + runLabel +
				"; if that cluster is gone for good, remove the journal"},
		"no-such-context": {dead, func(t *testing.T, _ *apiserver, file string) {
			change(t, file, func(j *Journal) { j.Context = "renamed" })
		}, `journal "DIR/run.kubernetes": the kubeconfig has no context "renamed"`,
			"kubectl config get-contexts lists them; if that cluster is gone for good, " +
				"remove the journal"},
		"no-journal": {dead, func(t *testing.T, _ *apiserver, file string) {
			write(t, file, "\x1b[2J{")
		}, `read journal: "DIR/run.kubernetes" is ` +
			"left alone: it is not a journal",
			"look at it; remove it if toll did not make it, or set XDG_STATE_HOME to a " +
				"directory of your own"},
		"of-others": {dead, func(t *testing.T, _ *apiserver, file string) {
			chmod(t, file, 0o666)
		}, `read journal: "DIR/run.kubernetes" is ` +
			"left alone: others may write to it (mode 666)",
			"look at it; remove it if toll did not make it, or set XDG_STATE_HOME to a " +
				"directory of your own"},
		"far":   {elsewhere, func(*testing.T, *apiserver, string) {}, "", ""},
		"alive": {alive, func(*testing.T, *apiserver, string) {}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := holding(t, map[string]string{"run": tt.mark})
			file := writeJournal(t, dir, s, "run", tt.mark)
			tt.with(t, s, file)
			c := Clean{StateDir: dir}
			removed, err := c.Run(t.Context())
			if len(removed) != 0 || len(s.names()) != 6 {
				t.Errorf("removed %q, left %q", removed, s.names())
			}
			if (err == nil) != (tt.err == "") {
				t.Fatalf("%v, want %q", err, tt.err)
			}
			if err != nil {
				if got := testgolden.Stable(err.Error()); got != tt.err {
					t.Errorf("%q, want %q", got, tt.err)
				}
				if got := testgolden.Stable(hint.Of(err)); got != tt.hint {
					t.Errorf("hint %q, want %q", got, tt.hint)
				}
			}
			if _, err := os.Stat(file); err != nil {
				t.Error(err)
			}
		})
	}
}

// The lock alone keeps the journal.
func TestCleanLeavesTheLiving(t *testing.T) {
	dead, _, _ := marks()
	dir := t.TempDir()
	s := holding(t, map[string]string{})
	j := Journal{Owner: dead, Run: "run", Kubeconfig: s.access().Kubeconfig, Context: "fake",
		Server: s.URL, Namespace: fakeNamespace}
	f, err := j.write(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := Clean{StateDir: dir, Others: true}
	if removed, err := c.Run(t.Context()); err != nil || len(removed) != 0 ||
		len(s.verbs(pods)) != 0 {
		t.Errorf("%q, %v, asked for %q", removed, err, s.verbs(pods))
	}
	if err := f.close(true); err != nil {
		t.Error(err)
	}
}

func TestJournalHasNoSecrets(t *testing.T) {
	s := newAPIServer(t)
	dir := t.TempDir()
	text, err := os.ReadFile(writeJournal(t, dir, s, "run", "mark"))
	if err != nil || strings.Contains(string(text), fakeToken) {
		t.Errorf("%s, %v", text, err)
	}
}

func FuzzReadJournal(f *testing.F) {
	text, err := json.Marshal(Journal{Owner: "a/b/c/d/e", Run: "r", Context: "c",
		Server: "https://s", Namespace: "n"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("{}"))
	f.Add([]byte(`{"run": "a/b", "namespace": "../x"}`))
	dir := f.TempDir()
	d, err := journal.Open(dir)
	if err != nil {
		f.Fatal(err)
	}
	defer d.Close()
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, "x"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		j, done, err := readJournal(d, "x")
		if err != nil {
			return
		}
		if j.Run == "" || j.Namespace == "" || strings.ContainsAny(j.Run+j.Namespace, "/,= ") {
			t.Errorf("%+v", j)
		}
		if err := done(false); err != nil {
			t.Error(err)
		}
	})
}

func FuzzStatus(f *testing.F) {
	f.Add([]byte(`{"status": "Success"}`))
	f.Add(
		[]byte(
			`{"status": "Failure", "message": "command terminated with exit code 3", "reason": ` +
				`"NonZeroExitCode"}`))
	f.Add([]byte("\x1b[2J"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s := newTestStream()
		if err := s.parse(text); err != nil && !plain(err.Error()) {
			t.Errorf("not fit to be shown: %q", err)
		}
	})
}

func change(t *testing.T, file string, how func(*Journal)) {
	t.Helper()
	text, err := os.ReadFile(file)
	var j Journal
	if err := errors.Join(err, json.Unmarshal(text, &j)); err != nil {
		t.Fatal(err)
	}
	how(&j)
	if text, err = json.Marshal(j); err != nil {
		t.Fatal(err)
	}
	write(t, file, string(text))
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func chmod(t *testing.T, file string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(file, mode); err != nil {
		t.Fatal(err)
	}
}
