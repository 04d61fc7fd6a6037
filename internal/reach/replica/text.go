package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/machine/exchange"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

var errGone = errors.New("the network namespace is gone")

// ReadText reads the texts of a namespace's rules into Space.Text. It runs iptables-save, for the
// rules that iptables writes, and nft, if they are installed. It reads no rules of a chain whose
// number of rules has changed. m must be this machine.
func (m *Machine) ReadText(ctx context.Context, space int) error {
	return m.Spaces[space].ReadTextIn(ctx, m.Spaces[space].visit)
}

// ReadTextIn is like Machine.ReadText for a namespace in which visit calls functions.
func (s *Space) ReadTextIn(ctx context.Context, visit func(func() error) error) error {
	reading.Lock()
	defer reading.Unlock()
	counts := s.counts()
	if s.Text != nil || len(counts) == 0 {
		return nil
	}
	t := texts{ctx: ctx, iptables: s.Nft.Iptables(), options: s.Nft.Options(), want: counts,
		found: map[chain][]string{}}
	err := visit(func() error { t.read(); return nil })
	all := []RuleText{}
	for _, c := range slices.SortedFunc(maps.Keys(t.found), chain.compare) {
		for i, text := range t.found[c] {
			if text == "" {
				continue
			}
			all = append(all, RuleText{c.table, c.name, i + 1, printable.Line(text)})
		}
	}
	s.Text = all
	return errors.Join(err, ctx.Err())
}

// reading is held while texts are read: connections in several copies of a machine, at the same
// time, may need those of its doubtful rules.
var reading sync.Mutex

// TextOf returns the text of the rule at the place of r. It returns "" if the text was not read, or
// if r is a policy.
func (s *Space) TextOf(r RuleText) string {
	reading.Lock()
	defer reading.Unlock()
	i := slices.IndexFunc(s.Text, func(t RuleText) bool {
		return t.Table == r.Table && t.Chain == r.Chain && t.Number == r.Number
	})
	if i < 0 {
		return ""
	}
	return s.Text[i].Text
}

// Words describes the rule that lost a packet: by its text or, if that was not read, by its place.
func (m *Machine) Words(l Lost) string {
	r := l.Rule.RuleText
	if r.Number == 0 {
		return fmt.Sprintf("the policy of %s %s", r.Table, r.Chain)
	}
	if text := m.Spaces[l.Space].TextOf(r); text != "" {
		return fmt.Sprintf("%s %s: %s", r.Table, r.Chain, text)
	}
	return fmt.Sprintf("rule %d of %s %s", r.Number, r.Table, r.Chain)
}

// visit calls f in the namespace. It returns errGone if the namespace no longer exists.
func (s *Space) visit(f func() error) error {
	if s.PID != 0 {
		return netns.Visit(s.PID, func() error {
			if id, err := os.Readlink("/proc/thread-self/ns/net"); err != nil || id != s.ID {
				return fmt.Errorf("read rules: %w", errors.Join(errGone, err))
			}
			return f()
		})
	}
	found, err := netns.Find()
	if err != nil {
		return err
	}
	defer func() {
		for _, x := range found {
			_ = x.Close()
		}
	}()
	i := slices.IndexFunc(found, func(x netns.Found) bool { return x.ID == s.ID })
	if i < 0 {
		return fmt.Errorf("read rules: %w", errGone)
	}
	return found[i].Visit(f)
}

type chain struct{ table, name string }

func (c chain) compare(d chain) int {
	return strings.Compare(c.table+"\x00"+c.name, d.table+"\x00"+d.name)
}

// counts returns the number of rules in each chain with rules.
func (s *Space) counts() map[chain]int {
	out := map[chain]int{}
	for _, r := range s.Nft.Rules() {
		out[chain{r.Table, r.Chain}]++
	}
	for _, t := range s.Legacy {
		for _, r := range t.Rules() {
			if r.Number > 0 {
				out[chain{r.Table, r.Chain}]++
			}
		}
	}
	return out
}

// texts collects the rules of chains.
type texts struct {
	ctx      context.Context
	iptables []string // tables of iptables-nft
	options  map[nft.Place][]string
	want     map[chain]int
	found    map[chain][]string // "" if a rule's text is not known
}

// builtin lists the tables that iptables knows. Listing a legacy table creates it.
var builtin = []string{"filter", "mangle", "nat", "raw", "security"}

func (t *texts) read() {
	for family, program := range map[string]string{"ip": "iptables", "ip6": "ip6tables"} {
		legacy := []string{}
		native := false
		for _, name := range builtin {
			if t.lacks(program + "-legacy " + name) {
				legacy = append(legacy, name)
			}
			native = native || slices.Contains(t.iptables, family+" "+name)
		}
		if native {
			found := iptablesRules(t.run("nf_tables", program+"-nft-save", program+"-save"),
				family+" ")
			maps.DeleteFunc(found, func(c chain, rules []string) bool {
				t.dropPartial(c, rules)
				return !slices.Contains(t.iptables, c.table)
			})
			t.accept(found)
		}
		for _, name := range legacy {
			t.accept(iptablesRules(t.run("legacy", program+"-legacy-save", program+"-save",
				"-t", name), program+"-legacy "))
		}
	}
	for c := range t.want {
		known := t.found[c] != nil && !slices.Contains(t.found[c], "")
		if !known && !strings.Contains(c.table, "-legacy ") {
			t.accept(nftRules(t.output("nft", "-a", "-s", "-t", "list", "ruleset")))
			return
		}
	}
}

// dropPartial empties the lines that iptables-save prints without parts of their rules.
func (t *texts) dropPartial(c chain, rules []string) {
	for i, line := range rules {
		want, ok := t.options[nft.Place{Table: c.table, Chain: c.name, Number: i + 1}]
		words := strings.Fields(line)
		if !ok || slices.ContainsFunc(want, func(o string) bool {
			return !slices.Contains(words, o)
		}) {
			rules[i] = ""
		}
	}
}

// lacks reports whether a table has rules whose texts are not read yet.
func (t *texts) lacks(table string) bool {
	for c := range t.want {
		if c.table == table && t.found[c] == nil {
			return true
		}
	}
	return false
}

// accept fills in the texts that are not known yet.
func (t *texts) accept(found map[chain][]string) {
	for c, rules := range found {
		if len(rules) != t.want[c] {
			continue
		}
		if t.found[c] == nil {
			t.found[c] = make([]string, len(rules))
		}
		for i, text := range rules {
			t.found[c][i] = cmp.Or(t.found[c][i], text)
		}
	}
}

// run returns the output of program. If program is not installed, it returns the output of other,
// provided that the version of other names the kind of tables.
func (t *texts) run(kind, program, other string, args ...string) string {
	if ProgramFile(program) == "" {
		program = other
		if !strings.Contains(t.output(program, "--version"), kind) {
			return ""
		}
	}
	return t.output(program, args...)
}

// ProgramFile returns the path of a program in PATH or root's directories, or "".
func ProgramFile(program string) string {
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/sbin"} {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

const textTime = 10 * time.Second

// output returns what the program prints, or "" if it is missing or fails.
func (t *texts) output(program string, args ...string) string {
	path := ProgramFile(program)
	if path == "" {
		return ""
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := exchange.Output(t.ctx, cmd, exchange.Limits{Time: textTime})
	if err != nil {
		return ""
	}
	return string(out)
}

// iptablesRules parses the output of iptables-save. It prepends prefix to the tables' names.
func iptablesRules(text, prefix string) map[chain][]string {
	out := map[chain][]string{}
	table := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "*"); ok {
			table = prefix + name
		} else if rest, ok := strings.CutPrefix(line, "-A "); ok {
			name, _, _ := strings.Cut(rest, " ")
			out[chain{table, name}] = append(out[chain{table, name}], line)
		}
	}
	return out
}

// nftRules parses the output of nft -a list ruleset. A rule starts after two tabs and ends with its
// handle, possibly some lines later.
func nftRules(text string) map[chain][]string {
	out := map[chain][]string{}
	var at chain
	var rule []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		body := strings.TrimLeft(line, "\t ")
		depth := len(line) - len(strings.TrimLeft(line, "\t"))
		words := strings.Fields(body)
		switch {
		case depth == 0 && len(words) > 2 && words[0] == "table":
			at, rule = chain{table: words[1] + " " + words[2]}, nil
		case depth == 1:
			at.name, rule = "", nil
			if len(words) > 1 && words[0] == "chain" {
				at.name = words[1]
			}
		case at.name == "" || depth < 2:
		default:
			end := strings.LastIndex(body, " # handle ")
			if end < 0 {
				if len(rule) > 0 || strings.HasSuffix(body, "{") || strings.HasSuffix(body, ",") {
					rule = append(rule, body)
				}
				continue
			}
			out[at] = append(out[at], strings.Join(append(rule, body[:end]), " "))
			rule = nil
		}
	}
	return out
}
