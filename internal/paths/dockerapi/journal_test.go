package dockerapi

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/text/hint"
)

func TestJournal(t *testing.T) {
	dir := t.TempDir()
	j, err := NewJournal(dir, "id", "pid:[1]/2/3", "unix:///x")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []Entry{{Image, "a"}, {Network, "b"}, {Container, "c"}, {Link, "d"},
		{Rule, "iptables e"}, {Switch, "f"}} {
		if err := j.Add(e.Kind, e.Name); err != nil {
			t.Fatal(err)
		}
	}
	j.Gone(Network, "b")
	j.Gone(Rule, "iptables e")
	b, err := os.ReadFile(j.file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := readJournal(bytes.NewReader(b))
	if err != nil || got.mark != "pid:[1]/2/3" || got.host != "unix:///x" ||
		!slices.Equal(got.Made, []Entry{{Image, "a"}, {Container, "c"}, {Link, "d"},
			{Switch, "f"}}) {
		t.Errorf("%+v %v", got, err)
	}
	here, err := namespace()
	if err != nil || got.elsewhere(here) || !got.elsewhere(here+"1") || got.elsewhere("1"+here) {
		t.Errorf("journal of %q, here is %q, %v", got.namespace, here, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(j.file); err != nil {
		t.Error("a journal that still has entries is gone")
	}
	j, err = NewJournal(dir, "id2", "pid:[1]/2/3", "unix:///x")
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Add(Image, "a"); err != nil {
		t.Fatal(err)
	}
	j.Gone(Image, "a")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(j.file); !os.IsNotExist(err) {
		t.Errorf("a journal whose things are all removed stays: %v", err)
	}
}

func TestLeftBehind(t *testing.T) {
	j, err := NewJournal(t.TempDir(), "id", "mark", "unix:///x")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []Entry{{Network, "a"}, {Network, "b"}, {Container, "c"}} {
		if err := j.Add(x.Kind, x.Name); err != nil {
			t.Fatal(err)
		}
	}
	err = j.Left()
	if err == nil || err.Error() != "left behind: 2 networks, 1 container" ||
		hint.Of(err) != "once the daemon answers again, toll clean removes what is left" {
		t.Errorf("%v", err)
	}
	for _, x := range []Entry{{Network, "a"}, {Network, "b"}, {Container, "c"}} {
		j.Gone(x.Kind, x.Name)
	}
	if err := j.Left(); err != nil {
		t.Error(err)
	}
}
