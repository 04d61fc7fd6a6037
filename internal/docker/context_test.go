package docker

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/path"
)

func TestNoHost(t *testing.T) {
	_, err := findHost(func(key string) string {
		return map[string]string{"DOCKER_CONTEXT": "yours", "DOCKER_CONFIG": "/nonexistent"}[key]
	})
	_, errSocket := socketOf("tcp://10.0.0.1:2375")
	for _, err := range []error{err, errSocket} {
		var u *path.UnsupportedError
		if !errors.As(err, &u) || u.Remedy == "" {
			t.Errorf("%v", err)
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
	b, err := os.ReadFile(j.file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := readJournal(bytes.NewReader(b))
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
