package lab

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

const hostsEnd = "print-hosts"

func TestLinkedNames(t *testing.T) {
	l := started(t, &Lab{})
	p := build(t, l, path.Spec{Mode: mode.Link, From: mode.FromContainer, To: mode.ToContainer})
	before, err := os.ReadFile(hostsFile)
	if err != nil {
		t.Fatal(err)
	}
	const line = "172.17.0.2\tdb server\n"
	for _, c := range []struct {
		place path.Place
		has   bool
	}{{p.Clients[0], true}, {p.Servers[0], false}} {
		proc, err := c.place.Start(path.Command{Args: []string{hostsEnd}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(proc.Out)
		if err != nil {
			t.Fatal(err)
		}
		if err := proc.Wait(); err != nil {
			t.Errorf("%s: %v", c.place.Name(), err)
		}
		if strings.Contains(string(text), line) != c.has ||
			!strings.HasPrefix(string(text), string(before)) {
			t.Errorf("%s: /etc/hosts is\n%s", c.place.Name(), text)
		}
		proc.In.Close()
		proc.Out.Close()
	}
	if after, err := os.ReadFile(hostsFile); err != nil || string(after) != string(before) {
		t.Errorf("the machine's own /etc/hosts changed: %v\n%s", err, after)
	}
}
