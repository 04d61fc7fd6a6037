package cases

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestDevices compares copies of machines with devices that this kernel may lack, the reports on
// them, and commands that are tried there, with what clients get. make test-vm-bpf has the devices.
func TestDevices(t *testing.T) {
	if os.Getenv("BRIDGETOLL_VM") == "" {
		t.Skip("make test-vm-bpf runs it in a VM, whose kernel has such devices")
	}
	for _, s := range situations(t, "devices/*") {
		t.Run(s.name, func(t *testing.T) {
			m := start(t, s)
			got := m.dial(s)
			if len(s.answers) == 0 {
				t.Errorf("without answers; these are a client's:\n%s", strings.Join(got, "\n"))
				s.answers = got
			}
			same(t, "a client", got, s.answers)
			got = m.dump(s).dial(t, s)
			for i, d := range s.dials {
				if d.doubted {
					got[i] = ""
				}
			}
			same(t, "the copy", unanswered(got), unanswered(s.answers))
			m.compareList(t, s)
			if s.try != "" {
				m.compareTry(t, s)
			}
		})
	}
}

// compareList compares the list and, for dials that only the report on a port mentions, that report
// with what clients get: a report on each port would take too long there.
func (m *machine) compareList(t *testing.T, s *situation) {
	t.Helper()
	unlisted := slices.DeleteFunc(slices.Clone(s.dials), func(d dial) bool { return !d.unlisted })
	reports := m.reports(s, patience, append(portsOf(unlisted), 0)...)
	for i, d := range s.dials {
		port := uint16(0)
		if d.unlisted {
			port = d.to.Port()
		}
		_, want, _ := strings.Cut(s.answers[i], ": ")
		s.compareReport(t, fmt.Sprint("the report on ", port), reports[port], d, want)
	}
	checkTexts(t, s, reports[0], reports)
}

// compareTry compares what toll ports --try says about the situation's commands with what clients
// get after the commands were run.
func (m *machine) compareTry(t *testing.T, s *situation) {
	t.Helper()
	r, _ := m.tried(s)
	if r.Tried.Code != 0 {
		t.Fatalf("the commands failed in the copy: %s", r.Tried.Output)
	}
	m.sh(s.try)
	after := m.dial(s)
	changed := 0
	for i, d := range s.dials {
		if after[i] != s.answers[i] {
			changed++
		}
		if !d.unlisted {
			_, want, _ := strings.Cut(after[i], ": ")
			s.compareReport(t, "the try", r, d, want)
		}
	}
	if changed == 0 {
		t.Error("the commands change nothing")
	}
}
