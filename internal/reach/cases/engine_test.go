package cases

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// TestEngines does what TestSituations does with real Docker Engines, and with both packet filters
// of those that have two. Engines differ, so only the installed one's answers are in the files.
func TestEngines(t *testing.T) {
	pathtest.NeedsDaemons(t)
	for _, e := range pathtest.Engines(t) {
		for _, filter := range filters(e) {
			for _, s := range situations(t, "docker/*") {
				t.Run(e.Name+filter+"/"+s.name, func(t *testing.T) {
					t.Parallel()
					e.Ran(t, "`toll ports` against clients"+strings.Replace(filter, "-", " with ", 1))
					s.env = append(e.Env(), "FILTER="+strings.TrimPrefix(filter, "-"))
					s.compareEngine(t, e.Name == "installed")
				})
			}
		}
	}
}

// filters returns the suffixes of the names of an engine's packet filters; "" is the default one.
func filters(e pathtest.Engine) []string {
	if strings.Contains(e.Says("--help"), "--firewall-backend") {
		return []string{"", "-nftables"}
	}
	return []string{""}
}

func (s *situation) compareEngine(t *testing.T, saved bool) {
	m := start(t, s)
	want := m.dial(s)
	if saved && !*update {
		same(t, "a client", want, s.answers)
	} else if saved {
		if err := s.save(want); err != nil {
			t.Fatal(err)
		}
	}
	copied := m.dump(s).dial(t, s)
	for i := range copied { // since Engine 28, docker-proxy answers from the dialled address
		if from := ", answers from "; !strings.Contains(want[i], from) {
			copied[i], _, _ = strings.Cut(copied[i], from)
		}
	}
	same(t, "the copy", copied, want)
	s.lenient = true
	all, reports := m.compareReports(t, s, want)
	checkTexts(t, s, all, reports)
	m.compareTops(all)
}

// compareTops compares the processes of containers with those that the engine lists. It lists none
// that left their control group.
func (m *machine) compareTops(r *ports.Report) {
	m.t.Helper()
	for _, home := range r.Containers {
		b, err := m.command("docker", "top", home.Name, "-eo", "pid").Output()
		var want, got []string
		if lines := strings.Fields(string(b)); len(lines) > 0 {
			want = lines[1:]
		}
		for _, p := range home.Processes {
			got = append(got, strconv.Itoa(p.PID))
		}
		slices.Sort(want)
		slices.Sort(got)
		if len(want) > 0 && !slices.Equal(got, want) {
			m.t.Errorf("container %s has processes %q, want %q, %v", home.Name, got, want, err)
		}
	}
}
