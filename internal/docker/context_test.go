package docker

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/path"
)

func TestFindHost(t *testing.T) {
	home := t.TempDir()
	write := func(file, text string) {
		t.Helper()
		file = filepath.Join(home, ".docker", file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("config.json", `{"currentContext": "mine"}`)
	// The folder is the SHA-256 of the name.
	write("contexts/meta/"+sum([]byte("mine"))+"/meta.json", `{"Name": "mine", "Endpoints": {"docker": {"Host": "unix:///mine"}}}`)
	write("contexts/meta/"+sum([]byte("bare"))+"/meta.json", `{"Name": "bare"}`)
	for _, c := range []struct {
		name string
		env  map[string]string
		want string // "": refused
	}{
		{"host", map[string]string{"DOCKER_HOST": "unix:///given", "DOCKER_CONTEXT": "mine"}, "unix:///given"},
		{"configured", nil, "unix:///mine"},
		{"context", map[string]string{"DOCKER_CONTEXT": "default"}, defaultHost},
		{"no-configuration", map[string]string{"DOCKER_CONFIG": "/nonexistent"}, defaultHost},
		{"unknown", map[string]string{"DOCKER_CONTEXT": "yours"}, ""},
		{"without-a-daemon", map[string]string{"DOCKER_CONTEXT": "bare"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := findHost(func(key string) string {
				if key == "HOME" {
					return home
				}
				return c.env[key]
			})
			if got != c.want || (err != nil) != (c.want == "") || err != nil && !errors.Is(err, path.ErrUnsupported) {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
	for host, want := range map[string]string{"unix:///var/run/docker.sock": "/var/run/docker.sock", "tcp://10.0.0.1:2375": "", "ssh://me@there": "", "::": ""} {
		if got, err := socketOf(host); got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v", host, got, err)
		}
	}
}

func TestJournal(t *testing.T) {
	dir := t.TempDir()
	j, err := newJournal(dir, "id", "pid:[1]/2/3", "unix:///x")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []entry{{ofImage, "a"}, {ofNetwork, "b"}, {ofContainer, "c"}, {ofLink, "d"}, {ofRule, "iptables e"}, {ofSwitch, "f"}} {
		if err := j.add(e.kind, e.name); err != nil {
			t.Fatal(err)
		}
	}
	j.gone(ofNetwork, "b")
	j.gone(ofRule, "iptables e")
	got, err := readJournal(j.file)
	if err != nil || got.mark != "pid:[1]/2/3" || got.host != "unix:///x" ||
		!slices.Equal(got.made, []entry{{ofImage, "a"}, {ofContainer, "c"}, {ofLink, "d"}, {ofSwitch, "f"}}) {
		t.Errorf("%+v %v", got, err)
	}
	here, err := namespace()
	if err != nil || got.elsewhere(here) || !got.elsewhere(here+"1") || got.elsewhere("1"+here) {
		t.Errorf("journal of %q, here is %q, %v", got.namespace, here, err)
	}
	if err := j.close(true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(j.file); err != nil {
		t.Error("a journal that still has entries is gone")
	}
	j, err = newJournal(dir, "id2", "pid:[1]/2/3", "unix:///x")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.add(ofImage, "a"), j.close(false)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(j.file); err != nil {
		t.Error("the journal of a failed clean-up is gone")
	}
}

func TestHasPairs(t *testing.T) {
	args := []string{"/usr/sbin/docker-proxy", "-proto", "tcp", "-host-ip", "::1", "-host-port", "1", "-container-ip", "2", "-use-listen-fd"}
	for _, c := range []struct {
		want []string
		ok   bool
	}{
		{[]string{"-proto", "tcp", "-host-port", "1"}, true},
		{[]string{"-proto", "udp"}, false},
		{[]string{"-use-listen-fd", "x"}, false},
		{[]string{"-container-port", "2"}, false},
	} {
		if hasPairs(args, c.want) != c.ok {
			t.Errorf("%v: %v", c.want, !c.ok)
		}
	}
}
