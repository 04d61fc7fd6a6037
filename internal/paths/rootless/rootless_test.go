package rootless

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine"
)

func TestNamed(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ program, says, want string }{
		"slirp4netns": {Slirp4netns, "echo slirp4netns version 1.2.0; echo commit: 656041d",
			"slirp4netns 1.2.0"},
		"rootlesskit":  {RootlessKit, "echo rootlesskit version 1.1.0", "rootlesskit 1.1.0"},
		"pasta":        {Pasta, "echo pasta 2025_05_03.587980c", "pasta 2025_05_03.587980c"},
		"silent-pasta": {Pasta, ": 2025_05_03.587980c", "pasta 2025_05_03.587980c"},
		"no-version":   {Pasta, "echo pasta unknown version", "pasta"},
		"fails":        {Pasta, "echo pasta 1; exit 1", "pasta"},
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+c.says+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second is remembered
			if got := Named(c.program, file); got != c.want {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
		}
	}
}

func TestSlirpPublish(t *testing.T) {
	const want = `{"execute":"add_hostfwd","arguments":{"proto":"tcp","host_addr":"0.0.0.0",` +
		`"host_port":8080,"guest_port":5201}}`
	for _, c := range []struct{ answer, err string }{
		{`{"return":{"id":1}}`, ""},
		{`{"error":{"desc":"bad request: add_hostfwd: slirp_add_hostfwd failed"}}`,
			`publish port 8080 by slirp4netns: it answers "bad request: add_hostfwd: ` +
				`slirp_add_hostfwd failed"`},
		{"", "publish port 8080 by slirp4netns: read its answer: EOF"},
		{strings.Repeat(" ", maxAnswer) + `{"return":{}}`,
			"publish port 8080 by slirp4netns: read its answer: EOF"},
	} {
		socket := filepath.Join(t.TempDir(), "api")
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		asked := make(chan string, 1)
		go func() {
			c2, err := l.Accept()
			if err != nil {
				asked <- err.Error()
				return
			}
			defer c2.Close()
			b, _ := io.ReadAll(c2) // until the other end has shut down writing
			_, _ = fmt.Fprint(c2, c.answer)
			asked <- strings.TrimSpace(string(b))
		}()
		err = SlirpPublish(socket, Port{Host: 8080, Container: 5201})
		if (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("answer %q: %v", c.answer, err)
		}
		if got := <-asked; got != want {
			t.Errorf("asked %q", got)
		}
		l.Close()
	}
	if err := SlirpPublish(filepath.Join(t.TempDir(), "none"), Port{Host: 1, Container: 2}); err == nil {
		t.Error("nobody listens, and no error")
	}
}

func TestFindPodmanWaitsForNoWriter(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	if err := os.MkdirAll(filepath.Join(dir, "libpod/tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "libpod/tmp/pause.pid"), 0o600); err != nil {
		t.Fatal(err)
	}
	pid, err := FindPodman(filepath.Join(dir, "podman/podman.sock"))
	if !errors.Is(err, machine.ErrUnsupported) {
		t.Errorf("%d, %v", pid, err)
	}
}
