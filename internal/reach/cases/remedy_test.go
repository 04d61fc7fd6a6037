package cases

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// TestRemedies compares the remedies that a copy of the machine approves with those expected,
// applies them to the machine, and dials as real clients.
func TestRemedies(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "namespaces of a machine need root")
	}
	for _, s := range situations(t, "remedies/*") {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.need(t)
			m := start(t, s)
			m.compareClients(t, s)
			trials, got := m.remedies(t, s)
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
			m.get(t, s.closes, true)
			applied := map[string]bool{}
			for i, d := range s.dials {
				m.apply(t, trials[i], len(s.needs) > 0, applied)
				m.get(t, []dial{d}, true)
			}
			m.get(t, s.closes, false)
		})
	}
}

// get waits until real clients connect, or no longer do.
func (m *machine) get(t *testing.T, dials []dial, connected bool) {
	t.Helper()
	for _, d := range dials {
		what := fmt.Sprintf("%s connects: %t", d, connected)
		testwait.Until(t, patience, what, func() bool {
			got, err := m.sample(d)
			if err != nil {
				t.Fatal(err)
			}
			return (got.got == "connected") == connected
		})
	}
}

// apply runs the commands of a trial on the machine, except those that have been applied. printed is
// whether it runs them as they are printed, instead of as they were tried.
func (m *machine) apply(t *testing.T, trial *ports.Trial, printed bool, applied map[string]bool) {
	t.Helper()
	if trial == nil || len(trial.Commands) == 0 || trial.Untried != "" {
		t.Fatalf("no remedy: %+v", trial)
	}
	for _, c := range trial.Commands {
		text := cmp.Or(c.As, c.Text)
		if printed {
			text = c.Text
		}
		if !applied[text] {
			applied[text] = true
			m.sh(strings.ReplaceAll(text, "sudo ", ""))
		}
	}
}

var entered = regexp.MustCompile(`nsenter -t ([0-9]+) `)

// remedies returns the trial for each dial, and a line for each: its remedy, what else that opens
// and closes, and the number of commands that the copy rejected.
func (m *machine) remedies(t *testing.T, s *situation) (trials []*ports.Trial, lines []string) {
	t.Helper()
	reports := m.reports(s, patience, portsOf(s.dials)...)
	names := map[string]string{}
	for name, pid := range m.places() {
		names[pid] = name
	}
	for _, d := range s.dials {
		p := pathOf(reports[d.to.Port()], d)
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
		trials = append(trials, p.Trial)
		line = entered.ReplaceAllStringFunc(line, func(s string) string {
			return "nsenter -t " + names[entered.FindStringSubmatch(s)[1]] + " "
		})
		lines = append(lines, line)
	}
	return trials, lines
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

// TestEveryRemedyIsApplied finds the parts of commands in the code that makes remedies. Each must
// be in a command that TestRemedies or TestTraps applies to a machine before a client connects.
func TestEveryRemedyIsApplied(t *testing.T) {
	applied := ""
	for _, s := range situations(t, "remedies/*") {
		applied += strings.Join(s.remedies, "\n") + "\n"
	}
	for _, s := range situations(t, "traps/*") {
		if len(s.dials) > 0 {
			applied += strings.Join(s.traps, "\n") + "\n"
		}
	}
	parts := 0
	for _, file := range []string{"admit", "block", "traps_masqueraded", "traps_network"} {
		file = "../ports/" + file + ".go"
		for _, text := range commandParts(t, file) {
			parts++
			form := regexp.QuoteMeta(text)
			form = strings.NewReplacer("%s", ".*", "%d", `\w+`).Replace(form)
			if !regexp.MustCompile(form).MatchString(applied) {
				t.Errorf("%s: no case applies a remedy with %q", file, text)
			}
		}
	}
	if least := 40; parts < least {
		t.Errorf("only %d parts of commands were found", parts)
	}
}

// commandPart matches literals that are parts of commands: they have a flag, or begin with a
// program or a word of a rule.
var commandPart = regexp.MustCompile(
	`(^| )-{1,2}[a-zA-Z]|^(sudo|sysctl|nft|ip|bridge|insert|add|ct|iif|from|to) |^net\.|%s [sd]addr `)

// commandParts returns the literals of a source file that are parts of commands. Those that are
// only compared with other texts are none, nor are sentences about settings.
func commandParts(t *testing.T, file string) (out []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	compared := map[ast.Node]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if compared[n] {
			return false
		}
		switch n := n.(type) {
		case *ast.CaseClause:
			for _, x := range n.List {
				compared[x] = true
			}
		case *ast.CallExpr:
			if of, ok := n.Fun.(*ast.SelectorExpr); ok {
				x, ok := of.X.(*ast.Ident)
				return !ok || x.Name != "strings" || of.Sel.Name == "Join"
			}
		case *ast.BinaryExpr:
			return n.Op != token.EQL && n.Op != token.NEQ
		case *ast.BasicLit:
			text, err := strconv.Unquote(n.Value)
			if err == nil && n.Kind == token.STRING && commandPart.MatchString(text) &&
				!strings.Contains(text, " is 1") {
				out = append(out, text)
			}
		}
		return true
	})
	return out
}
