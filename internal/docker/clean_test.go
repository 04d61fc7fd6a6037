package docker

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// managerSays is a daemon that manages a swarm with services of these names, which
// tolls of another machine made, and nothing else.
func managerSays(services ...string) http.HandlerFunc {
	var all []string
	for _, name := range services {
		all = append(all, fmt.Sprintf(`{"ID": "id-%s", "Spec": {"Name": %[1]q, "Labels": {%q: "00000000000000000000000000000000/b/pid:[1]/1/1"}}}`, name, runLabel))
	}
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.51")
		w.Header().Set("Content-Type", "application/json")
		switch _, what, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); {
		case r.Method == http.MethodDelete:
			http.Error(w, `{"message": "another machine's"}`, http.StatusForbidden)
		case strings.HasSuffix(r.URL.Path, "/_ping"):
			fmt.Fprint(w, "OK")
		case what == "info":
			fmt.Fprint(w, `{"OSType": "linux", "Swarm": {"ControlAvailable": true}}`)
		case what == "services":
			fmt.Fprintf(w, "[%s]", strings.Join(all, ","))
		default:
			fmt.Fprint(w, "[]")
		}
	}
}

// What was left alone is told of all daemons, and once of one that has two
// addresses.
func TestCleanLeavesAloneAtEachDaemon(t *testing.T) {
	dir := t.TempDir()
	serve := func(name string, h http.HandlerFunc) string {
		l, err := net.Listen("unix", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: h}
		go func() { _ = s.Serve(l) }()
		t.Cleanup(func() { s.Close() })
		return "unix://" + l.Addr().String()
	}
	hosts := []string{serve("a", managerSays("one", "two")), serve("b", managerSays("three")), serve("again", managerSays("three"))}
	c := Clean{Left: []string{"of an earlier Run"}}
	removed, failed, errs := c.daemons(context.Background(), hosts, nil)
	if len(removed) > 0 || len(failed) > 0 || len(errs) > 0 {
		t.Errorf("removed %q, failed %v, %v", removed, failed, errs)
	}
	if want := []string{"service one", "service two", "service three"}; !slices.Equal(c.Left, want) {
		t.Errorf("left alone: %q, want %q", c.Left, want)
	}
}
