package cases

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/reach/collect"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/show/sentence"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// TestTraps plants faults that only the real machine has, among others. A machine whose ports are
// as Docker publishes them must have none. If the situation has dials, the commands that the traps
// recommend are then run on the machine, and the answers are what real clients get after them. Each
// of several commands that a trap leaves to choose from is run on a machine of its own.
func TestTraps(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "namespaces of a machine need root")
	}
	for _, s := range situations(t, "traps/*") {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for which := 0; ; which++ {
				m := start(t, s)
				said := strings.Join(m.awaitTraps(t, s), "\n")
				if len(s.dials) == 0 {
					return
				}
				choices := strings.Split(said, "; or, ")
				for _, x := range command.FindAllString(choices[which], -1) {
					m.sh(strings.TrimPrefix(x, "sudo "))
				}
				m.compareClients(t, s)
				if which == len(choices)-1 {
					return
				}
			}
		})
	}
}

// awaitTraps returns the machine's traps once they are those expected: that a program hangs takes a
// few seconds to show.
func (m *machine) awaitTraps(t *testing.T, s *situation) []string {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		got := m.traps()
		wrong := unlike(got, s.traps)
		if wrong == "" {
			return got
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s\n%s", wrong, strings.Join(got, "\n"))
		}
	}
}

// command matches a command in a trap's remedy.
var command = regexp.MustCompile(`sudo [^;()\n]+`)

// unlike returns what distinguishes the traps from those expected.
func unlike(got, want []string) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d traps, %d are expected", len(got), len(want))
	}
	for _, w := range want {
		name, said, _ := strings.Cut(w, ": ")
		if !slices.ContainsFunc(got, func(g string) bool {
			return strings.HasPrefix(g, name+": ") && strings.Contains(g, said)
		}) {
			return "no " + w
		}
	}
	return ""
}

func (m *machine) traps() (out []string) {
	m.t.Helper()
	cmd := m.command(m.self, "traps")
	b, err := cmd.CombinedOutput()
	var all []ports.Trap
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		m.t.Fatalf("%v: %s", err, b)
	}
	for _, t := range all {
		out = append(out, fmt.Sprintf("%s: %s; %s; %s",
			strings.Join(append([]string{t.Code}, t.Ports...), " "), t.Text, t.Evidence, t.Remedy))
	}
	return out
}

// hang listens and connects, but does not accept.
func hang(at string) error {
	l, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err == nil {
		defer c.Close()
		_, err = os.NewFile(3, "ready").WriteString("0\n")
	}
	if err != nil {
		return err
	}
	for {
		time.Sleep(time.Hour)
	}
}

// traps writes the traps of the machine around this process.
func traps() error {
	ctx := context.Background()
	f, network, err := collect.Read(ctx)
	if err == nil {
		f.TryFor = patience
		_, err = collect.Ask(ctx, f, network, 0)
	}
	if err != nil {
		return err
	}
	if f.Copy == nil {
		return fmt.Errorf("there is no copy: %+v", f.Missing)
	}
	r := ports.Judge(f, 0)
	sentence.FillPorts(r)
	return json.NewEncoder(os.Stdout).Encode(r.Traps)
}
