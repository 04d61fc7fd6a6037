package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/exchange"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// rule is a line of iptables-save.
type rule struct {
	table, chain string
	spec         string
	words        []string
	packets      uint64
}

// has reports whether the rule has the words consecutively.
func (r rule) has(words string) bool {
	want := strings.Fields(words)
	for i := 0; i+len(want) <= len(r.words); i++ {
		if slices.Equal(r.words[i:i+len(want)], want) &&
			(i == 0 || r.words[i-1] != "!" || want[0] == "!") {
			return true
		}
	}
	return false
}

// inChain returns a function that reports whether a rule is in the chain and has all the words.
func inChain(chain string, words []string) func(rule) bool {
	return func(r rule) bool {
		return r.chain == chain && !slices.ContainsFunc(words, func(w string) bool {
			return !r.has(w)
		})
	}
}

func parseRules(text string) []rule {
	var out []rule
	table := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "*"); ok {
			table = name
			continue
		}
		counters, rest, ok := strings.Cut(line, "] -A ")
		if !ok || !strings.HasPrefix(counters, "[") {
			continue
		}
		packets, _, _ := strings.Cut(counters[1:], ":")
		n, err := strconv.ParseUint(packets, 10, 64)
		chain, spec, _ := strings.Cut(rest, " ")
		if err != nil || chain == "" {
			continue
		}
		out = append(out, rule{table, chain, spec, strings.Fields(spec), n})
	}
	return out
}

// savers lists the default iptables-save of this machine and both of its variants, nft and legacy.
// Docker uses one of them.
var (
	savers  = []string{"iptables-save", "iptables-nft-save", "iptables-legacy-save"}
	savers6 = []string{"ip6tables-save", "ip6tables-nft-save", "ip6tables-legacy-save"}
)

const (
	saveTimeout = 5 * time.Second
	maxRules    = 64 << 20 // bytes
)

// save runs the program and returns the rules that it lists. table "" means all tables.
func save(program, table string) ([]rule, error) {
	text, err := saved(program, table)
	return parseRules(text), err
}

// saved returns what the program prints. The tables that it leaves out because it does not know a
// rule of theirs are read from the kernel.
func saved(program, table string) (string, error) {
	args := []string{"-c"}
	if table != "" {
		args = append(args, "-t", table)
	}
	out, err := exchange.Output(context.Background(), exec.Command(program, args...),
		exchange.Limits{Time: saveTimeout, Output: maxRules})
	if err != nil {
		return "", fmt.Errorf("read rules: %s: %w", program, err)
	}
	text := string(bytes.TrimSpace(out))
	for _, m := range leftOut.FindAllStringSubmatch(text, -1) {
		read, err := kernelTable(strings.HasPrefix(program, "ip6"), m[1])
		if err != nil {
			return "", err
		}
		text = strings.Replace(text, m[0], read, 1)
	}
	return text, nil
}

var leftOut = regexp.MustCompile("(?m)^# Table `([^']+)' is incompatible.*$")

// kernelTable returns a table in the form of iptables-save -c, as far as it knows the rules' parts.
func kernelTable(six bool, table string) (string, error) {
	family := nft.IPv4
	if six {
		family = nft.IPv6
	}
	chains, err := nft.Read()
	if err != nil {
		return "", err
	}
	rules, err := nft.ReadTable(family, table)
	if err != nil {
		return "", err
	}
	out := []string{"# read from the kernel (nf_tables)", "*" + table}
	for _, c := range chains {
		policy := "ACCEPT"
		if c.Drop {
			policy = "DROP"
		}
		if c.Table == table && c.V6 == six && c.V4 != six {
			out = append(out, fmt.Sprintf(":%s %s [0:0]", c.Name, policy))
		}
	}
	for _, r := range rules {
		spec := strings.Replace(r.Rule.String(), " -j DNAT to ", " -j DNAT --to-destination ", 1)
		if r.Comment != "" {
			spec = fmt.Sprintf("-m comment --comment %q %s", r.Comment, spec)
		}
		out = append(out, fmt.Sprintf("[%d:0] -A %s %s", r.Packets, r.Chain, spec))
	}
	return strings.Join(append(out, "COMMIT"), "\n"), nil
}

var errNoRule = errors.New("no such rule")

// findRule returns the rule and the program that lists it.
func (e *engine) findRule(six bool, table, chain string, words ...string) (r rule, program string,
	err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	programs, found := savers, &e.saver
	if six {
		programs, found = savers6, &e.saver6
	}
	if *found != "" {
		programs = []string{*found}
	}
	ran := false
	for _, p := range programs {
		// reading the table would create it
		if strings.Contains(p, "-legacy-") && !e.loaded(table, six) {
			continue
		}
		var rules []rule
		err := e.ns.Do(func() (err error) { rules, err = save(p, table); return err })
		if err != nil {
			continue
		}
		ran = true
		if i := slices.IndexFunc(rules, inChain(chain, words)); i >= 0 {
			*found = p
			return rules[i], p, nil
		}
	}
	if !ran {
		return rule{}, "", &machine.UnsupportedError{
			Missing: "Docker's rules cannot be read: iptables-save cannot be run",
			Remedy:  "install iptables"}
	}
	return rule{}, "", fmt.Errorf("find Docker's rule %s %s %s: %w", table, chain,
		strings.Join(words, " "), errNoRule)
}

func (e *engine) loaded(table string, six bool) (is bool) {
	_ = e.ns.Do(func() error { is = xtables.Loaded(table, six); return nil })
	return is
}

// ruleHop returns the hop of a rule that sees each connection's first packet.
func (s *site) ruleHop(kind mode.HopKind, expect path.Expect, table, chain string,
	words ...string) (path.Hop, error) {
	if s.engine.native() {
		return s.nativeHop(kind, expect, table, words...)
	}
	r, program, err := s.engine.findRule(s.six(), table, chain, words...)
	if err != nil {
		return path.Hop{}, err
	}
	name := r.table + " " + r.chain + " " + r.spec
	if s.six() {
		name = "ip6 " + name
	}
	return path.Hop{Kind: kind, Name: name, Where: s.engine.name, Expect: expect,
		Read: func() (sample.Counters, error) {
			var rules []rule
			err := s.engine.ns.Do(func() (err error) {
				rules, err = save(program, r.table)
				return err
			})
			if err != nil {
				return sample.Counters{}, err
			}
			i := slices.IndexFunc(rules, func(now rule) bool {
				return now.chain == r.chain && now.spec == r.spec
			})
			if i < 0 { // the table is now printed by the other of iptables-save and the kernel
				i = slices.IndexFunc(rules, inChain(chain, words))
			}
			if i < 0 {
				return sample.Counters{}, errNoRule
			}
			return sample.Counters{Hits: rules[i].packets}, nil
		}}, nil
}

func (s *site) portRule(kind mode.HopKind, table, chain string, port, second uint16,
	words func(port uint16) []string) (path.Hop, error) {
	h, err := s.ruleHop(kind, path.Matches, table, chain, words(port)...)
	if err != nil || !s.path.Spec.Second {
		return h, err
	}
	other, err := s.ruleHop(kind, path.Matches, table, chain, words(second)...)
	h.Read = local.Sum(h.Read, other.Read)
	return h, err
}

func (s *site) guardRule(kind mode.HopKind, table, chain string, words ...string) error {
	return s.guard(s.ruleHop(kind, path.Untouched, table, chain, words...))
}

// guard adds h to the guards, unless err says that the rule does not exist.
func (s *site) guard(h path.Hop, err error) error {
	if errors.Is(err, errNoRule) {
		return nil
	}
	if err == nil {
		s.path.Guards = append(s.path.Guards, h)
	}
	return err
}
