package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/reach/collect"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/show/sentence"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// TestTries compares what toll ports --try says about a change with what real clients get after the
// change was made, and with what toll ports --against says then.
func TestTries(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "namespaces of a machine need root")
	}
	for _, s := range situations(t, "tries/*") {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.need(t)
			m := start(t, s)
			before := make([]string, len(s.dials))
			var all sync.WaitGroup
			for i, d := range s.dials {
				all.Go(func() { before[i] = m.answers(d) })
			}
			all.Wait()
			r, text := m.tried(s)
			if r.Tried.Code != 0 {
				t.Fatalf("the commands failed in the copy: %s", r.Tried.Output)
			}
			if after := m.dial(&situation{dials: s.dials, answers: before}); unlike(after, before) != "" {
				t.Errorf("the try changed the machine: %s", unlike(after, before))
			}
			m.sh(s.try + settled)
			m.compareClients(t, s)
			changed := 0
			for i, d := range s.dials {
				if s.answers[i] != before[i] {
					changed++
				}
				if d.unlisted {
					continue
				}
				_, want, _ := strings.Cut(s.answers[i], ": ")
				s.compareReport(t, "the try", r, d, want)
			}
			if changed == 0 {
				t.Error("the commands change nothing")
			}
			for _, line := range s.says {
				if !slices.Contains(text, line) {
					t.Errorf("%q is not in %q", line, text)
				}
			}
			m.compareAgainst(t, s)
		})
	}
}

// settled waits until no spanning tree keeps a port waiting.
const settled = "\nfor i in $(seq 600); do\n" +
	"bridge link | grep -qE 'state (listening|learning)' || break; sleep 0.1; done\n"

// untried is the file of the machine before the commands.
const untried = "/run/untried.json"

// tried returns the report on the situation's commands, and its sentences. It saves the machine
// before them.
func (m *machine) tried(s *situation) (*ports.Report, []string) {
	m.t.Helper()
	cmd := m.command(m.self, "tried", s.try, s.client, untried)
	b, err := cmd.Output()
	var got triedReport
	if err == nil {
		err = json.Unmarshal(b, &got)
	}
	if err != nil {
		m.t.Fatalf("%v: %s", err, b)
	}
	return got.Report, got.Text
}

type triedReport struct {
	Report *ports.Report
	Text   []string
}

// tried writes the report on commands that are tried in a copy of the machine around this process,
// which it saves to a file.
func tried(args []string) error {
	ctx := context.Background()
	f, network, err := collect.Read(ctx)
	if err != nil {
		return err
	}
	contained := f.Contained
	f.Contained = "" // even if the tests run in a container
	f.Everything = true
	if args[1] != "" {
		if f.Client, err = netip.ParseAddr(args[1]); err != nil {
			return err
		}
	}
	r, _, err := collect.Try(ctx, f, network, 0, args[0])
	if err != nil {
		return err
	}
	if f.Copy == nil {
		return fmt.Errorf("there is no copy: %+v", f.Missing)
	}
	sentence.FillPorts(r)
	f.Contained = contained
	saved, err := os.Create(args[2])
	if err != nil {
		return err
	}
	return errors.Join(collect.Save(ctx, saved, f), saved.Close(),
		json.NewEncoder(os.Stdout).Encode(triedReport{r, r.Tried.Text(r.Changes)}))
}

// compareAgainst compares the causes that toll ports gives for what has changed since the machine
// was saved with those expected.
func (m *machine) compareAgainst(t *testing.T, s *situation) {
	t.Helper()
	if len(s.says) == 0 {
		return
	}
	out, err := m.command(pathtest.Toll(t), "ports", "--against", untried).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text := strings.Join(strings.Fields(string(out)), " ")
	for _, line := range s.says {
		if strings.HasPrefix(line, "Container ") { // only --try knows what changed in one
			continue
		}
		if _, cause, _ := strings.Cut(line, "): "); !strings.Contains(text, cause) {
			t.Errorf("%q is not in\n%s", cause, out)
		}
	}
}
