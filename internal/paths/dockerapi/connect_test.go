package dockerapi

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
)

func engineSays(api, info string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", api)
		switch {
		case r.URL.Path == "/_ping":
			fmt.Fprint(w, "OK")
		case strings.HasSuffix(r.URL.Path, "/info"):
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, info)
		default:
			http.NotFound(w, r)
		}
	}
}

const patience = 30 * time.Second

const anEngine = `{"OSType": "linux", "OperatingSystem": "Debian GNU/Linux 12 (bookworm)", ` +
	`"ServerVersion": "28.5.2"}`

const (
	noEngine = "the Docker daemon at unix://DIR/s does not answer like one"
	details  = "docker info has details; toll supports Docker Engine 20.10 and later"
)

// The refusal must also be quick.
func TestDaemonsThatAreRefused(t *testing.T) {
	const enough = 300 * time.Millisecond
	for _, c := range []struct {
		name    string
		says    http.HandlerFunc
		missing string // "": not refused
		remedy  string
	}{
		{name: "engine", says: engineSays("1.51", anEngine)},
		{name: "oldest", says: engineSays(firstAPI, anEngine)},
		{name: "desktop", says: engineSays("1.51",
			`{"OSType": "linux", "OperatingSystem": "Docker Desktop"}`),
			missing: "Docker Desktop runs its containers in a virtual machine, so their counters " +
				"cannot be read from here",
			remedy: "docker context use default for an engine of this machine, or --on lab"},
		{name: "windows", says: engineSays("1.51",
			`{"OSType": "windows", "OperatingSystem": "Microsoft Windows Server 2022"}`),
			missing: "the Docker daemon runs windows containers, and their counters cannot be " +
				"read from here", remedy: "an engine with Linux containers on this machine, or --on lab"},
		{name: "too-old", says: engineSays("1.40", anEngine),
			missing: "the Docker daemon at unix://DIR/s is too old: it has API 1.40, and toll " +
				"needs 1.41", remedy: "Docker Engine 20.10 or later, or --on lab"},
		{name: "ancient", says: engineSays("1.24", anEngine),
			missing: "the Docker daemon at unix://DIR/s is too old: it has API 1.24, and toll " +
				"needs 1.41", remedy: "Docker Engine 20.10 or later, or --on lab"},
		{name: "garbage", says: engineSays("1.51", "\xff\x00{"),
			missing: noEngine,
			remedy:  details},
		{name: "nothing", says: engineSays("1.51", "{}"), missing: noEngine,
			remedy: details},
		{name: "version-is-no-number", says: engineSays("x", anEngine), missing: "the Docker daemon at unix://DIR/s is too old: it has API x, and toll needs 1.41",
			remedy: "Docker Engine 20.10 or later, or --on lab"},
		{name: "another-server", says: func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "<html>hello")
		},
			missing: noEngine, remedy: details},
		{name: "forbids", says: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
		},
			missing: noEngine, remedy: details},
		{name: "fails", says: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/_ping" {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}, missing: noEngine, remedy: details},
		{name: "hangs", says: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			missing: "the Docker daemon at unix://DIR/s does not answer within 300ms", remedy: remedy.Restart("docker") + ", or --on lab"},
		{name: "hangs-later", says: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/_ping" {
				fmt.Fprint(w, `{"OSType": "linux", `)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}
		}, missing: "the Docker daemon at unix://DIR/s does not answer within 300ms", remedy: remedy.Restart("docker") + ", or --on lab"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("DOCKER_HOST", serve(t, c.says))
			answer := patience
			if strings.HasPrefix(c.name, "hangs") {
				answer = enough
			}
			refusal(t, answer, c.missing, c.remedy)
		})
	}
}

// The command docker is no Docker Engine that could be started.
func TestRemedyBesideDockersCommand(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	want := StartEngine()
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := StartEngine(); got != want {
		t.Errorf("%q, without the command %q", got, want)
	}
}

func TestDaemonThatIsNone(t *testing.T) {
	for _, c := range []struct{ name, says string }{
		{"closes", ""}, {"garbage", strings.Repeat("\xff\x00\r\n", 1000)},
		{"endless-head", "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", 1<<20)},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			t.Setenv("DOCKER_HOST", "unix://"+l.Addr().String())
			go testnet.Accept(l, func(conn net.Conn) {
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, c.says)
			})
			refusal(t, patience, noEngine, details)
		})
	}
}

func refusal(t *testing.T, answer time.Duration, missing, remedy string) {
	t.Helper()
	began := time.Now()
	d, err := connectDocker(t.Context(), t.TempDir(), answer)
	if took := time.Since(began); took > 2*patience {
		t.Errorf("it took %s", took)
	}
	if err == nil {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	var u *machine.UnsupportedError
	switch {
	case missing == "" && err != nil:
		t.Errorf("refused: %v", err)
	case missing == "":
	case !errors.As(err, &u):
		t.Errorf("not refused: %v", err)
	default:
		if got := testgolden.Stable(u.Missing); got != missing {
			t.Errorf("missing %q, want %q", got, missing)
		}
		if got := testgolden.Stable(u.Remedy); got != remedy {
			t.Errorf("remedy %q, want %q", got, remedy)
		}
	}
}

func TestNoHost(t *testing.T) {
	t.Setenv("DOCKER_CONTEXT", "yours")
	t.Setenv("DOCKER_CONFIG", "/nonexistent")
	for host, want := range map[string][2]string{"": {
		`there is no docker context "yours" in /nonexistent`,
		"docker context use default, or DOCKER_HOST=unix:///var/run/docker.sock"},
		"tcp://10.0.0.1:2375": {"the Docker daemon at tcp://10.0.0.1:2375 has no Unix socket, " +
			"so it may be on " +
			"another machine, and toll measures on this one",
			"run toll on its machine with DOCKER_HOST=unix:///var/run/docker.sock, or " +
				"--on lab"}} {
		t.Setenv("DOCKER_HOST", host)
		refusal(t, patience, want[0], want[1])
	}
}

// Old scripts leave it in the environment, and Docker Engine 29 knows no API before 1.44.
func TestOverriddenAPIVersion(t *testing.T) {
	for _, set := range []string{"", "1.39"} {
		t.Setenv("DOCKER_HOST", serve(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/v1.39/") {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprint(w, `{"message": "client version 1.39 is too old"}`)
				return
			}
			engineSays("1.52", anEngine)(w, r)
		}))
		t.Setenv("DOCKER_API_VERSION", set)
		d, err := Connect(t.Context(), t.TempDir())
		if err == nil {
			err = d.Close()
		}
		var u *machine.UnsupportedError
		if set == "" && err != nil || set != "" && (!errors.As(err, &u) ||
			!strings.HasPrefix(u.Remedy, "unset DOCKER_API_VERSION, which is 1.39;")) {
			t.Errorf("%q: %v, %+v", set, err, u)
		}
	}
}
