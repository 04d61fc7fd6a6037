package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
)

// fakeDaemon listens at a Unix socket, which DOCKER_HOST then names.
func fakeDaemon(t *testing.T) net.Listener {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen("unix", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	t.Setenv("DOCKER_HOST", "unix://"+file)
	return l
}

// engineSays is a daemon of an API that has this to say of itself.
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

// anEngine is what a daemon says that is fit.
const anEngine = `{"OSType": "linux", "OperatingSystem": "Debian GNU/Linux 12 (bookworm)", "ServerVersion": "28.5.2"}`

// Daemons whose containers cannot be measured are refused by name, and those that
// are none, and soon.
func TestDaemonsThatAreRefused(t *testing.T) {
	if err := mayRead(); err != nil {
		t.Skip(err)
	}
	const enough = 300 * time.Millisecond
	for _, c := range []struct {
		name     string
		says     http.HandlerFunc
		mode     mode.Name
		missing  string // "": not refused
		remedy   string
		unlikely string // in the error
	}{
		{name: "engine", says: engineSays("1.51", anEngine), mode: mode.Native},
		{name: "oldest", says: engineSays(firstAPI, anEngine), mode: mode.Native},
		{name: "desktop", says: engineSays("1.51", `{"OSType": "linux", "OperatingSystem": "Docker Desktop"}`), mode: mode.Native,
			missing: "Docker Desktop's, whose containers are in a virtual machine", remedy: "docker context use default"},
		{name: "windows", says: engineSays("1.51", `{"OSType": "windows", "OperatingSystem": "Microsoft Windows Server 2022"}`), mode: mode.Native,
			missing: "runs containers of windows", remedy: "Linux containers", unlikely: "Desktop"},
		{name: "too-old", says: engineSays("1.40", anEngine), mode: mode.Native, missing: "it speaks API 1.40, and toll 1.41", remedy: "Docker Engine 20.10"},
		{name: "ancient", says: engineSays("1.24", anEngine), mode: mode.Native, missing: "it speaks API 1.24, and toll 1.41", remedy: "Docker Engine 20.10"},
		{name: "rootless", says: engineSays("1.51", anEngine[:len(anEngine)-1]+`, "SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless"]}`), mode: mode.Bridge,
			missing: "this Docker is rootless", remedy: "toll compare shared --from container --baseline shared"},
		{name: "rootless-shared", says: engineSays("1.51", anEngine[:len(anEngine)-1]+`, "SecurityOptions": ["name=rootless"]}`), mode: mode.Shared},
		{name: "garbage", says: engineSays("1.51", "\xff\x00{"), mode: mode.Native, missing: "does not answer as one", remedy: "docker info"},
		{name: "nothing", says: engineSays("1.51", "{}"), mode: mode.Native, missing: "does not answer as one", remedy: "docker info", unlikely: "Desktop"},
		{name: "version-is-no-number", says: engineSays("x", anEngine), mode: mode.Native, missing: "is too old", remedy: "Docker Engine"},
		{name: "another-server", says: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>hello") }, mode: mode.Native,
			missing: "does not answer as one", remedy: "docker info"},
		{name: "forbids", says: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, mode: mode.Native,
			missing: "does not answer as one", remedy: "docker info"},
		{name: "fails", says: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/_ping" {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}, mode: mode.Native, missing: "does not answer as one", remedy: "docker info"},
		{name: "hangs", says: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, mode: mode.Native,
			missing: "does not answer within 300ms", remedy: "sudo systemctl restart docker"},
		{name: "hangs-later", says: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/_ping" {
				fmt.Fprint(w, `{"OSType": "linux", `)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}
		}, mode: mode.Native, missing: "does not answer within 300ms", remedy: "sudo systemctl restart docker"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := &http.Server{Handler: c.says}
			l := fakeDaemon(t)
			go server.Serve(l)
			t.Cleanup(func() { server.Close() })
			// Without Program this test's own binary would have to be static.
			refusal(t, &Docker{Program: "/nonexistent", StateDir: t.TempDir(), answer: enough}, c.mode, c.missing, c.remedy, c.unlikely)
		})
	}
}

// Whatever listens need not speak HTTP.
func TestDaemonThatIsNone(t *testing.T) {
	if err := mayRead(); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct{ name, says string }{
		{"closes", ""}, {"garbage", strings.Repeat("\xff\x00\r\n", 1000)}, {"endless-head", "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", 1<<20)},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := fakeDaemon(t)
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						defer conn.Close()
						_, _ = conn.Read(make([]byte, 4096))
						_, _ = io.WriteString(conn, c.says)
					}()
				}
			}()
			refusal(t, &Docker{Program: "/nonexistent", StateDir: t.TempDir(), answer: 5 * time.Second}, mode.Native, "does not answer as one", "docker info", "")
		})
	}
}

// refusal holds a backend to how it refuses a mode; missing "" says that it does
// not.
func refusal(t *testing.T, d *Docker, m mode.Name, missing, remedy, unlikely string) {
	t.Helper()
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	known, _ := mode.Find(m)
	began := time.Now()
	err := d.Check(context.Background(), path.Spec{Mode: m, From: known.Routes[0].From, To: known.Routes[0].To})
	const soon = 30 * time.Second // on a busy machine
	if took := time.Since(began); took > soon {
		t.Errorf("it took %s", took)
	}
	var u *path.UnsupportedError
	switch {
	case missing == "" && err != nil:
		t.Errorf("refused: %v", err)
	case missing == "":
	case !errors.As(err, &u):
		t.Errorf("not refused: %v", err)
	case !strings.Contains(u.Missing, missing) || !strings.Contains(u.Remedy, remedy) || unlikely != "" && strings.Contains(u.Missing, unlikely):
		t.Errorf("missing %q, remedy %q; want %q, %q", u.Missing, u.Remedy, missing, remedy)
	}
}
