package swarm

import (
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
)

// things maps a list request's path to JSON.
func thatHas(t *testing.T, things map[string]string) (deleted func() []string) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "sock"))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // guards following
	var all []string
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.51")
		w.Header().Set("Content-Type", "application/json")
		_, what, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		has, ok := things[what]
		switch {
		case r.Method == http.MethodDelete:
			mu.Lock()
			all = append(all, what)
			mu.Unlock()
		case strings.HasSuffix(r.URL.Path, "/_ping"):
			fmt.Fprint(w, "OK")
		case ok:
			fmt.Fprint(w, has)
		default:
			fmt.Fprint(w, "[]")
		}
	})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	t.Setenv("DOCKER_HOST", "unix://"+l.Addr().String())
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

func labelled(name, mark string) string {
	return fmt.Sprintf(`{"ID": "id-%s", "Spec": {"Name": %[1]q, "Labels": {%q: %q}}}`, name,
		dockerapi.RunLabel, mark)
}

const (
	aManager = `{"OSType": "linux", "Swarm": {"ControlAvailable": true}}`
	aWorker  = `{"OSType": "linux", "Swarm": {"LocalNodeState": "active"}}`
)

func TestCleanLeavesAlone(t *testing.T) {
	const other = "00000000000000000000000000000000/b/pid:[1]/1/1"
	deleted := thatHas(t, map[string]string{
		"info": aManager, "services": "[" + labelled("one", other) + "," + labelled("two", other) +
			"]"})
	c := dockerapi.Clean{StateDir: t.TempDir(), Parts: []dockerapi.Part{Leftovers()}}
	removed, err := c.Run(t.Context())
	if len(removed)+len(deleted()) > 0 || err != nil {
		t.Errorf("removed %q, %q, %v", removed, deleted(), err)
	}
	const why = "of a toll on another machine"
	if want := []dockerapi.Left{{What: "service one", Why: why}, {What: "service two", Why: why}}; !slices.Equal(c.Left, want) {
		t.Errorf("left alone: %q, want %q", c.Left, want)
	}
}

func TestCleanOfTheSwarm(t *testing.T) {
	gone := journal.Mark() + "9"
	network := func(name, scope string) string {
		return fmt.Sprintf(`{"Id": "id-%s", "Name": %[1]q, "Scope": %q, "Labels": {%q: %q}}`, name,
			scope, dockerapi.RunLabel, gone)
	}
	deleted := thatHas(t, map[string]string{
		"info": aManager, "services": "[" + labelled("s", gone) + "," + labelled("users", "") + "]",
		"secrets":  "[" + labelled("k", gone) + "]",
		"networks": "[" + network("here", "local") + "," + network("over", "swarm") + "]"})
	removed, err := (&dockerapi.Clean{StateDir: t.TempDir(),
		Parts: []dockerapi.Part{Leftovers()}}).Run(t.Context())
	want := []string{"service s", "secret k", "network over", "network here"}
	if err != nil || !slices.Equal(removed, want) {
		t.Errorf("removed %q, %v; want %q", removed, err, want)
	}
	if want := []string{"services/id-s", "secrets/id-k", "networks/id-over", "networks/id-here"}; !slices.Equal(deleted(), want) {
		t.Errorf("asked to remove %q, want %q", deleted(), want)
	}
}

// The journal must stay.
func TestCleanOfAWorker(t *testing.T) {
	deleted := thatHas(t, map[string]string{"info": aWorker})
	dir := t.TempDir()
	d, err := dockerapi.Connect(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	j, err := dockerapi.NewJournal(dir, "gone", journal.Mark()+"9", d.Host)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Add(dockerapi.Service, "toll-s"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []interface{ Close() error }{j, d} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		_, err = (&dockerapi.Clean{StateDir: dir, Parts: []dockerapi.Part{Leftovers()}}).Run(
			t.Context())
		if len(deleted()) > 0 || err == nil ||
			!strings.HasSuffix(err.Error(), ": service toll-s belongs to a swarm, and this node "+
				"is not a manager now: run toll clean on a manager") {
			t.Errorf("removed %q, %v", deleted(), err)
		}
	}
}
