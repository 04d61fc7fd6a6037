package build

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

func (s *site) run(r *replica.Session, space int, script string) replica.Output {
	s.t.Helper()
	out, err := r.Run(s.t.Context(), replica.Command{Script: script, Space: space})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// What a command changes in the copy, connections there meet, and none on the machine.
func TestRun(t *testing.T) {
	s := newSite(t)
	before := s.in(s.spaces[0], "nft list ruleset")
	r := s.start(s.machine(), socket(0, "0.0.0.0:9000"), socket(0, "0.0.0.0:9001"))
	far := replica.Client{Card: "eth0"}
	s.expect(r, far, "192.0.2.10:9000", 0)
	out := s.run(r, 0, "echo one; iptables -I INPUT -p tcp --dport 9000 -j DROP && echo two >&2; exit 3")
	if out.Code != 3 || out.Text != "one\ntwo\n" || out.Cut || out.TimedOut {
		t.Errorf("%+v", out)
	}
	s.expect(r, far, "192.0.2.10:9000", -1)
	s.expect(r, far, "192.0.2.10:9001", 1)
	if after := s.in(s.spaces[0], "nft list ruleset"); before != after {
		t.Errorf("the machine's rules changed:\n%s", after)
	}
}
