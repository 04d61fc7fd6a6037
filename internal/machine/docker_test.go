package machine

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDocker(t *testing.T) {
	put := func(t *testing.T, file, text string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name string
		make func(t *testing.T, root string)
		want string
	}{
		{"absent", func(*testing.T, string) {}, ""},
		{"running", func(t *testing.T, root string) {
			put(t, root+"/run/docker.pid", "42\n", 0o644)
			put(t, root+"/proc/42/comm", "dockerd\n", 0o644)
		}, "running"},
		{"stale", func(t *testing.T, root string) {
			put(t, root+"/run/docker.pid", "42", 0o644)
		}, ""},
		{"reused-pid", func(t *testing.T, root string) {
			put(t, root+"/run/docker.pid", "42", 0o644)
			put(t, root+"/proc/42/comm", "bash\n", 0o644)
		}, ""},
		{"stale-installed", func(t *testing.T, root string) {
			put(t, root+"/run/docker.pid", "42", 0o644)
			put(t, root+"/usr/bin/dockerd", "", 0o755)
		}, "installed"},
		{"garbage", func(t *testing.T, root string) {
			put(t, root+"/run/docker.pid", "../../etc", 0o644)
		}, ""},
		{"on-path", func(t *testing.T, root string) {
			put(t, root+"/opt/bin/dockerd", "", 0o755)
		}, "installed"},
		{"no-program", func(t *testing.T, root string) {
			put(t, root+"/usr/bin/dockerd", "", 0o644)
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("PATH", ":relative:/opt/bin")
			root := t.TempDir()
			tt.make(t, root)
			if got := (Machine{Root: root}).docker(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
