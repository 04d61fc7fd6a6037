package cases

import (
	"os"
	"strings"
	"testing"
)

// TestDevices compares copies of machines with devices that this kernel may lack, and reports on
// them, with what clients get. make test-vm has the devices.
func TestDevices(t *testing.T) {
	if os.Getenv("BRIDGETOLL_VM") == "" {
		t.Skip("make test-vm runs it in a VM, whose kernel has such devices")
	}
	for _, s := range situations(t, "devices/*") {
		t.Run(s.name, func(t *testing.T) {
			m := start(t, s)
			same(t, "a client", m.dial(s), s.answers)
			got := m.dump(s).dial(t, s)
			for i, d := range s.dials {
				if d.doubted {
					got[i] = ""
				}
			}
			same(t, "the copy", unanswered(got), unanswered(s.answers))
			r := m.report(s, 0)
			for i, d := range s.dials {
				_, want, _ := strings.Cut(s.answers[i], ": ")
				s.compareReport(t, "the list", r, d, want)
			}
		})
	}
}
