package docker

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
)

// userChain is the chain that Docker leaves to the administrator and evaluates first.
const userChain = "DOCKER-USER"

// letThrough adds a rule that accepts frames which the bridge forwards, if rules see bridged
// frames: Docker's FORWARD policy would drop frames on a bridge that is not Docker's.
func (s *site) letThrough(bridge string) error {
	e := s.engine
	saver, err := e.userRules()
	if err != nil || saver == "" {
		return err
	}
	name := writer(saver) + " " + bridge
	if err := e.Journal.Add(dockerapi.Rule, name); err != nil {
		return err
	}
	s.path.Undo.Push("remove the rule for "+bridge, func() error {
		_, err := removeRules(e.ns, saver, func(r rule) bool {
			return r.mark() == e.Mark && r.has("-i "+bridge)
		})
		if err == nil {
			e.Journal.Gone(dockerapi.Rule, name)
		}
		return err
	})
	s.path.Facts["rules"] += ", and one in " + userChain + " that accepts what crosses this bridge"
	return iptables(e.ns, saver, "-I", userChain, "-i", bridge, "-o", bridge, "-m", "comment",
		"--comment", tagOf(e.Mark), "-j", "ACCEPT")
}

// userRules returns the program that lists the rules of userChain, or "" if no rule is needed.
func (e *engine) userRules() (saver string, err error) {
	var seen string
	if err := e.ns.Do(func() (err error) {
		seen, err = sysctl.Get(bridgeNF)
		return err
	}); err != nil || seen != "1" && !e.exempting() {
		return "", nil //nolint:nilerr // the setting is missing without br_netfilter
	}
	_, saver, err = e.findRule(false, "filter", "FORWARD", "-j "+userChain)
	if !errors.Is(err, errNoRule) {
		return saver, err
	}
	for _, p := range savers {
		if text, err := saved(p, "filter"); err == nil &&
			strings.Contains(text, "\n:FORWARD DROP ") {
			return "",
				&machine.UnsupportedError{
					Missing: "the rules of this machine drop what a bridge forwards (FORWARD policy), and there is no chain " + userChain +
						" for an exception", Remedy: "--on lab"}
		}
	}
	return "", nil
}

func writer(saver string) string { return strings.TrimSuffix(saver, "-save") }

func iptables(ns *netns.NS, saver string, args ...string) error {
	const lockSeconds = "5"
	ctx, cancel := context.WithTimeout(context.Background(), 2*saveTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, writer(saver),
		append([]string{"-w", lockSeconds, "-t", "filter"}, args...)...)
	said := local.Keep(cmd)
	err := ns.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("change rules: %s %s: %w", writer(saver), strings.Join(args, " "),
			said.Explain(err))
	}
	return nil
}

func removeRules(ns *netns.NS, saver string, match func(rule) bool) (n int, err error) {
	var rules []rule
	err = ns.Do(func() (err error) { rules, err = save(saver, "filter"); return err })
	if err != nil {
		return 0, err
	}
	for _, r := range rules {
		if r.chain != userChain || !match(r) {
			continue
		}
		words := []string{"-D", userChain}
		for _, w := range r.words {
			words = append(words, strings.Trim(w, `"`))
		}
		if err := iptables(ns, saver, words...); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (r rule) mark() string {
	for i, w := range r.words {
		if i > 0 && r.words[i-1] == "--comment" {
			return markOf(strings.Trim(w, `"`))
		}
	}
	return ""
}

func tagOf(mark string) string { return dockerapi.RunLabel + "=" + mark }

func markOf(tag string) string {
	mark, ok := strings.CutPrefix(tag, dockerapi.RunLabel+"=")
	if !ok {
		return ""
	}
	return mark
}
