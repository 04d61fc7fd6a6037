package docker

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

func fakeDaemon(t *testing.T, h http.Handler) *http.Server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen("unix", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_HOST", "unix://"+file)
	s := &http.Server{Handler: h}
	go func() { _ = s.Serve(l) }()
	return s
}

func engineSays(info string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.51")
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

const anEngine = `{"OSType": "linux", "OperatingSystem": "Debian GNU/Linux 12 (bookworm)", ` +
	`"ServerVersion": "28.5.2"}`

func TestRootless(t *testing.T) {
	if err := mayRead("Docker"); err != nil {
		t.Skip(err)
	}
	server := fakeDaemon(t, engineSays(anEngine[:len(
		anEngine)-1]+`, "SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless"]}`))
	defer server.Close()
	// Program keeps the test from requiring a static test binary.
	d := &Docker{Program: "/nonexistent", StateDir: t.TempDir()}
	for m, refused := range map[mode.Name]string{mode.Bridge: "no ancestor of the process that listens on DIR/sock is " +
		"RootlessKit; run toll where dockerd-rootless.sh runs, outside containers; or toll " +
		"compare shared --from container --baseline shared", mode.Shared: "",
		mode.Native: ""} {
		known, _ := mode.Find(m)
		err := d.Check(t.Context(), path.Spec{
			Mode: m, From: known.Routes[0].From, To: known.Routes[0].To})
		var u *machine.UnsupportedError
		got := ""
		if errors.As(err, &u) {
			got = u.Missing + "; " + u.Remedy
		}
		if got = testgolden.Stable(got); got != refused {
			t.Errorf("%s: %v: %q, want %q", m, err, got, refused)
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// The container's PID is that of a sandbox, as with gVisor, in which its processes are.
func TestRuntimeWithoutProcesses(t *testing.T) {
	for runtime, says := range map[string]string{"runsc": "toll does not see the processes of the Docker daemon's containers: their runtime is " +
		`runsc; "default-runtime": "runc" in /etc/docker/daemon.json, if that one starts no ` +
		"processes of this machine; or run toll outside containers, or with --pid host " +
		"--network host --privileged", "runc": "toll does not see the processes of the Docker daemon's containers; run toll " +
		"outside containers, or with --pid host --network host --privileged", "": "toll does not see the processes of the Docker daemon's containers; run toll " +
		"outside containers, or with --pid host --network host --privileged"} {
		e := &engine{Daemon: &dockerapi.Daemon{Info: system.Info{DefaultRuntime: runtime}}}
		err := e.sameProcesses(os.Getpid(), "toll-of-nobody")
		var u *machine.UnsupportedError
		if !errors.As(err, &u) || u.Missing+"; "+u.Remedy != says {
			t.Errorf("%v: %q, want %q", err, u.Missing+"; "+u.Remedy, says)
		}
	}
}

// Another path, which chose its subnet before, has made its network meanwhile.
func TestSubnetTakenMeanwhile(t *testing.T) {
	ns, err := netns.Here()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	for failures, want := range map[int]int{0: 1, 1: 2, 2: 2} {
		asked := 0
		server := fakeDaemon(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Api-Version", "1.51")
			w.Header().Set("Content-Type", "application/json")
			switch {
			case !strings.HasSuffix(r.URL.Path, "/networks/create"):
				fmt.Fprint(w, "[]")
			case asked < failures:
				asked++
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprint(w, `{"message": "Pool overlaps with other one on this address space"}`)
			default:
				asked++
				fmt.Fprint(w, `{"Id": "1"}`)
			}
		}))
		api, err := dockerapi.NewClient(os.Getenv("DOCKER_HOST"))
		if err != nil {
			t.Fatal(err)
		}
		s := &site{ctx: t.Context(), engine: &engine{Daemon: &dockerapi.Daemon{API: api},
			spot: spot{ns: ns}}}
		err = s.createOutsidePools(t.Context(), "x", client.NetworkCreateOptions{Driver: "bridge"})
		if asked != want || (err == nil) != (failures < 2) {
			t.Errorf("%d failures: asked %d times, %v", failures, asked, err)
		}
		if err := errors.Join(api.Close(), server.Close()); err != nil {
			t.Error(err)
		}
	}
}
