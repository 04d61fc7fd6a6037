package cases

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// TestRemedies compares the remedies that a copy of the machine approves with those expected, applies
// the first one to the machine, and dials as a real client.
func TestRemedies(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "namespaces of a machine need root")
	}
	for _, s := range situations(t, "remedies/*") {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			m := start(t, s)
			m.compareClients(t, s)
			first, got := m.remedies(t, s)
			if *update {
				if err := s.saveSection("remedies", got); err != nil {
					t.Fatal(err)
				}
				s.remedies = got
			}
			if !slices.Equal(got, s.remedies) {
				t.Errorf("remedies:\n%s\nwant:\n%s", strings.Join(got, "\n"),
					strings.Join(s.remedies, "\n"))
			}
			if first == nil || len(first.Commands) == 0 || first.Untried != "" {
				return
			}
			for _, c := range first.Commands {
				text := c.Text
				if c.As != "" {
					text = c.As
				}
				m.sh(strings.ReplaceAll(text, "sudo ", ""))
			}
			testwait.Until(t, patience, "a client gets through", func() bool {
				got, err := m.sample(s.dials[0])
				if err != nil {
					t.Fatal(err)
				}
				return got.got == "connected"
			})
		})
	}
}

var entered = regexp.MustCompile(`nsenter -t ([0-9]+) `)

// remedies returns the trial for the first dial, and a line for each dial: its remedy, what else that
// opens and closes, and the number of commands that the copy rejected.
func (m *machine) remedies(t *testing.T, s *situation) (first *ports.Trial, lines []string) {
	t.Helper()
	reports := map[uint16]*ports.Report{}
	names := map[string]string{}
	for name, pid := range m.places() {
		names[pid] = name
	}
	for i, d := range s.dials {
		port := d.to.Port()
		if reports[port] == nil {
			reports[port] = m.report(s, port)
		}
		p := pathOf(reports[port], d)
		if p == nil {
			t.Fatalf("the report does not have %s", d)
		}
		line := d.String() + ": " + p.Remedy
		if x := p.Trial; x != nil {
			for _, also := range []struct {
				verb string
				list []string
			}{{"opens", x.Opens}, {"closes", x.Closes}} {
				if len(also.list) > 0 {
					line += ", " + also.verb + " " + strings.Join(also.list, ", ")
				}
			}
			if x.Rejected > 0 {
				line += fmt.Sprintf(", rejected %d", x.Rejected)
			}
		}
		if i == 0 {
			first = p.Trial
		}
		line = entered.ReplaceAllStringFunc(line, func(s string) string {
			return "nsenter -t " + names[entered.FindStringSubmatch(s)[1]] + " "
		})
		lines = append(lines, line)
	}
	return first, lines
}

// pathOf returns the path of a dial's client, or of one in the same network, or nil.
func pathOf(r *ports.Report, d dial) *ports.Path {
	for _, exact := range []bool{true, false} {
		for _, row := range r.Ports {
			for _, p := range row.Dials {
				if row.Proto == d.proto && p.Dial == d.to.String() && isFrom(r, p, d, exact) {
					return &p
				}
			}
		}
		for _, in := range r.Inside {
			for _, p := range in.Dials {
				if in.Proto == d.proto && p.Dial == d.to.String() && isFrom(r, p, d, exact) {
					return &p
				}
			}
		}
	}
	return nil
}
