package machine

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestDocker(t *testing.T) {
	// listen leaves a socket, with somebody behind it or not.
	listen := func(t *testing.T, file string, open bool) {
		t.Helper()
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: file})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		if !open {
			l.Close()
			return
		}
		t.Cleanup(func() { l.Close() })
	}
	program := func(t *testing.T, file string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name string
		make func(t *testing.T, root string)
		want string
	}{
		{"absent", func(*testing.T, string) {}, ""},
		{"running", func(t *testing.T, root string) { listen(t, root+"/run/docker.sock", true) }, "running"},
		{"stale", func(t *testing.T, root string) { listen(t, root+"/run/docker.sock", false) }, ""},
		{"stale-installed", func(t *testing.T, root string) {
			listen(t, root+"/run/docker.sock", false)
			program(t, root+"/usr/bin/dockerd", 0o755)
		}, "installed"},
		{"no-socket", func(t *testing.T, root string) { program(t, root+"/run/docker.sock", 0o644) }, ""},
		{"on-path", func(t *testing.T, root string) { program(t, root+"/opt/bin/dockerd", 0o755) }, "installed"},
		{"no-program", func(t *testing.T, root string) { program(t, root+"/usr/bin/dockerd", 0o644) }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("PATH", ":relative:/opt/bin")
			// A socket's path has to fit in 107 bytes, which t.TempDir's may not.
			root, err := os.MkdirTemp("", "m")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(root) })
			if err := os.Mkdir(root+"/run", 0o755); err != nil {
				t.Fatal(err)
			}
			tt.make(t, root)
			if got := (Machine{Root: root}).docker(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
