package vantage

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

// engineOf serves an engine whose container, the only one, does not run.
func engineOf(t *testing.T, podman bool, container string) string {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.51")
		w.Header().Set("Content-Type", "application/json")
		switch path := r.URL.Path; {
		case strings.HasSuffix(path, "/_ping"):
			fmt.Fprint(w, "OK")
		case strings.HasSuffix(path, "/libpod/info") && podman:
			fmt.Fprint(w, `{"version": {"Version": "5.4.2"}}`)
		case strings.Contains(path, "/libpod/"):
			http.NotFound(w, r)
		case strings.HasSuffix(path, "/info"):
			fmt.Fprint(w, `{"OSType": "linux"}`)
		case strings.HasSuffix(path, "/containers/json"):
			fmt.Fprintf(w, `[{"Names": ["/%s"]}]`, container)
		case strings.HasSuffix(path, "/containers/"+container+"/json"):
			fmt.Fprint(w, `{"State": {"Running": false}}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"message": "there is none"}`)
		}
	})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	return "unix://" + l.Addr().String()
}

// A container is looked for on Docker and on Podman.
func TestContainersOfBoth(t *testing.T) {
	t.Setenv("DOCKER_HOST", engineOf(t, false, "shop"))
	t.Setenv("CONTAINER_HOST", engineOf(t, true, "webserver"))
	for from, hint := range map[string]string{
		"container:shop":       "docker start shop",
		"container:webserver":  "podman start webserver",
		"container:webservers": "did you mean container:webserver?",
		"container:x":          "see docker ps and podman ps",
		"network:x":            "see docker network ls and podman network ls",
	} {
		end, err := Open(t.Context(), t.TempDir(), []*Vantage{New(mode.Placement(from))})
		if err == nil {
			t.Errorf("%s: no error", from)
			_ = end()
			continue
		}
		var e *Error
		if !errors.As(err, &e) || e.Hint() != hint {
			t.Errorf("%s: %v, want the hint %q", from, err, hint)
		}
	}
}

// Only comparisons of modes have --on.
func TestHintsNameNoBackend(t *testing.T) {
	for remedy, want := range map[string]string{
		"sudo systemctl start docker; --on lab needs none": "sudo systemctl start docker; " +
			"--from host needs none",
		"Docker Engine 25.0 or later, or --on lab": "Docker Engine 25.0 or later; " +
			"--from host needs none",
		"--on docker":                   "--from host needs none",
		"run toll as root: sudo toll …": "run toll as root: sudo toll …; --from host needs none",
	} {
		v := New("network:x")
		err := v.noDaemon(&machine.UnsupportedError{Missing: "none", Remedy: remedy})
		var e *Error
		if !errors.As(err, &e) || e.Hint() != want {
			t.Errorf("%q: %q, want %q", remedy, e.Hint(), want)
		}
	}
}

func TestRemedyOfAStrangeDaemon(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "docker.sock"))
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Api-Version", "1.51")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, `{"message": "%s"}`, strings.Repeat("x", 200_000))
	})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	t.Setenv("DOCKER_HOST", "unix://"+l.Addr().String())
	_, err = Open(t.Context(), t.TempDir(), []*Vantage{New("network:x")})
	var e *Error
	if !errors.As(err, &e) || len(err.Error()) > 2000 {
		t.Fatalf("%d bytes of error: %.300v", len(err.Error()), err)
	}
	if got, want := testgolden.Stable(e.Hint()),
		"docker info has details; toll supports Docker Engine 20.10 and later; --from host "+
			"needs none"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
