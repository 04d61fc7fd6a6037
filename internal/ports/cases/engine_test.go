package cases

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/path/pathtest"
)

// TestEngines does what TestSituations does with real Docker Engines. Engines differ, so only the
// installed one's answers are in the files.
func TestEngines(t *testing.T) {
	pathtest.NeedsDaemons(t)
	for _, e := range pathtest.Engines(t) {
		for _, s := range situations(t, "docker/*") {
			t.Run(e.Name+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				s.env = e.Env()
				m := start(t, s)
				want := m.dial(s)
				if !*update && e.Name == "installed" {
					same(t, "a client", want, s.answers)
				} else if e.Name == "installed" {
					if err := s.save(want); err != nil {
						t.Fatal(err)
					}
				}
				same(t, "the copy", m.dump(s).dial(t, s), want)
			})
		}
	}
}
