package owner

import (
	"strings"
	"testing"
)

func TestAlive(t *testing.T) {
	own := Mark()
	if !Alive(own) || Elsewhere(own) {
		t.Errorf("%s: this process is alive, and here", own)
	}
	with := func(part int, value string) string {
		p := strings.Split(own, "/")
		p[part] = value
		return strings.Join(p, "/")
	}
	for what, gone := range map[string]string{
		"another process had this PID": with(start, "1"),
		"nobody has this PID":          with(pid, "999999999"),
		"the machine was booted since": with(boot, "2f6e5d1c-0000-4000-8000-000000000000"),
	} {
		if Alive(gone) && machineID() != "" {
			t.Errorf("%s is alive: %s", gone, what)
		}
	}
	for _, foreign := range []string{with(machine, "0123456789abcdef0123456789abcdef"), with(namespace, "pid:[1]"), "pid:[1]/1/1", "", "x", "a/b"} {
		if !Alive(foreign) {
			t.Errorf("%q is not ours to judge", foreign)
		}
	}
	if !Elsewhere(with(machine, "0123456789abcdef0123456789abcdef")) {
		t.Error("a process of another machine is here")
	}
}
