package collect

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// laterCopy is a copy in which clients on other machines get what got says, given the commands that
// were run.
type laterCopy struct {
	run  []string
	got  func(d replica.Dial, run []string) *replica.Lost
	code func(script string) int
	err  func(ctx context.Context) error
}

// late is the exit code of a command that did not end in time.
const late = 124

func (c *laterCopy) Run(ctx context.Context, x replica.Command) (replica.Output, error) {
	if c.err != nil {
		return replica.Output{}, c.err(ctx)
	}
	if c.code != nil {
		if code := c.code(string(x.Script)); code != 0 {
			return replica.Output{Code: code, TimedOut: code == late}, nil
		}
	}
	c.run = append(c.run, string(x.Script))
	return replica.Output{}, nil
}

func (c *laterCopy) Dial(_ context.Context, dials []replica.Dial) (out []replica.Answer, err error) {
	for _, d := range dials {
		a := replica.Answer{Outcomes: []replica.Outcome{{Got: replica.Connected, Source: d.Source}}}
		if d.Proto == "udp" {
			a.Outcomes[0] = replica.Outcome{Got: replica.Refused, Socket: -1}
		} else if lost := c.got(d, c.run); d.Card != "" && lost != nil {
			a.Outcomes[0] = replica.Outcome{Got: replica.Timeout, Socket: -1, Source: d.Source}
			if d.Explain {
				a.Lost = lost
			}
		}
		out = append(out, a)
	}
	return out, nil
}

func (c *laterCopy) Close() error { return nil }

func droppedBy(chain string, number int) *replica.Lost {
	return &replica.Lost{Rule: &replica.Rule{RuleText: replica.RuleText{Table: "ip filter",
		Chain: chain, Number: number}}}
}

// tryOn tries remedies for a server on port 9100 that other machines do not reach. It returns their
// path, and the commands that each fresh copy ran. Another server has port 9200.
func tryOn(t *testing.T, like laterCopy, limit time.Duration) (p ports.Path, run []string) {
	t.Helper()
	f := &ports.Facts{Space: "net:[1]", Proto: "tcp",
		Listeners: []ports.Listener{{Proto: "tcp", Addr: netip.MustParseAddrPort("0.0.0.0:9100"), Inode: 1,
			Owners: []ports.Process{{PID: 5, Name: "exporter"}}},
			{Proto: "tcp", Addr: netip.MustParseAddrPort("0.0.0.0:9200"), Inode: 2,
				Owners: []ports.Process{{PID: 6, Name: "other"}}}},
		Devices: []ports.Device{{Name: "eth0", Kind: "device", Index: 2, Up: true, Uplink: true,
			Addrs: []netip.Prefix{netip.MustParsePrefix("192.0.2.10/24")}}}}
	m := &replica.Machine{Spaces: []replica.Space{{ID: f.Space}}}
	c := ports.NewCopy(f, m, 9100)
	dial := func(dials []replica.Dial) []replica.Answer {
		fresh := like
		answers, err := fresh.Dial(t.Context(), dials)
		if err != nil {
			t.Fatal(err)
		}
		return answers
	}
	c.Take(dial(c.Dials()))
	which, dials := c.Lost()
	c.Explain(which, dial(dials))
	var made []*laterCopy
	unchanged := like
	unchanged.err = nil
	all := trials{c: c, unchanged: &unchanged, start: func(context.Context) (session, error) {
		fresh := like
		made = append(made, &fresh)
		return &fresh, nil
	}}
	if err := all.run(t.Context(), limit); err != nil {
		t.Fatal(err)
	}
	for _, x := range made {
		run = append(run, strings.Join(x.run, "; "))
	}
	for _, row := range ports.Judge(f, 9100).Ports {
		if p := row.Paths[ports.Remote]; p.Trial != nil {
			return p, run
		}
	}
	t.Fatal("no remedy was looked for")
	return p, nil
}

const (
	inInput = "iptables -I INPUT -d 192.0.2.10 -p tcp --dport 9100 -j ACCEPT"
	asUFW   = "iptables -A ufw-user-input -p tcp --dport 9100 -j ACCEPT"
	inUFW   = "iptables -I ufw-reject 1 -d 192.0.2.10 -p tcp --dport 9100 -j ACCEPT"
)

// A shell's exit code alone does not tell which program is missing.
func TestMissingProgram(t *testing.T) {
	for program, want := range map[string]string{
		"no-such-program": "the program is not installed here",
		"sh":              "the copy's shell does not find a program that it needs",
	} {
		if got := unable(replica.Command{Script: []byte(program + " -c true")},
			replica.Output{Code: noProgram}); got != want {
			t.Errorf("%s: %q", program, got)
		}
	}
}

func TestTryRemedies(t *testing.T) {
	lacking := unable(replica.Command{Script: []byte(asUFW)}, replica.Output{Code: noProgram})
	helps := func(commands ...string) func(replica.Dial, []string) *replica.Lost {
		return func(_ replica.Dial, run []string) *replica.Lost {
			if slices.Equal(run, commands) {
				return nil
			}
			return droppedBy("ufw-reject", 1)
		}
	}
	for _, c := range []struct {
		name     string
		copy     laterCopy
		remedy   string
		rejected int
		run      []string
	}{
		{"the first command", laterCopy{got: helps(asUFW)},
			"sudo ufw allow 9100/tcp (tried in a copy as sudo " + asUFW + ")", 0, []string{asUFW}},
		{"the second, in a fresh copy", laterCopy{got: helps(inUFW)},
			"sudo " + inUFW + " (tried in a copy)", 1, []string{asUFW, inUFW}},
		{"none", laterCopy{got: helps("never")}, "", 2, []string{asUFW, inUFW}},
		{"a command that fails", laterCopy{got: helps(inUFW), code: func(script string) int {
			return map[bool]int{true: 1}[script == asUFW]
		}}, "sudo " + inUFW + " (tried in a copy)", 1, []string{"", inUFW}},
		{"no program", laterCopy{got: helps(inUFW), code: func(string) int { return noProgram }},
			"sudo ufw allow 9100/tcp (not tried: " + lacking + ")", 0, []string{"", ""}},
		{"a command that does not end", laterCopy{got: helps("never"), code: func(script string) int {
			return map[bool]int{true: late}[script == asUFW]
		}}, "sudo ufw allow 9100/tcp (not tried: it did not end in time in the copy)", 1,
			[]string{"", inUFW}},
		{"only the address that stands for any", laterCopy{
			got: func(d replica.Dial, run []string) *replica.Lost {
				if len(run) > 0 && d.Source.String() == "203.0.113.1" {
					return nil
				}
				return droppedBy("INPUT", 1)
			}}, "", 1, []string{inInput}},
		{"no jail", laterCopy{got: helps("never"), err: func(context.Context) error {
			return &replica.NoJailError{Reason: errors.New("no user namespace")}
		}}, "sudo ufw allow 9100/tcp (not tried: no user namespace)", 0, []string{""}},
	} {
		p, run := tryOn(t, c.copy, time.Minute)
		if p.Remedy != c.remedy || p.Trial.Rejected != c.rejected || !slices.Equal(run, c.run) {
			t.Errorf("%s: %q, %d rejected, ran %q", c.name, p.Remedy, p.Trial.Rejected, run)
		}
		opens := []string{"9200/tcp to other machines"}
		if c.remedy == "" || p.Trial.Untried != "" {
			opens = nil
		}
		if !slices.Equal(p.Trial.Opens, opens) {
			t.Errorf("%s: opens %q", c.name, p.Trial.Opens)
		}
	}
}

// Each command gets packets to the next rule.
func TestTrySteps(t *testing.T) {
	for rules, want := range map[int]string{2: "sudo " + inInput + "; sudo " + inInput +
		" (tried in a copy)", 4: ""} {
		p, run := tryOn(t, laterCopy{got: func(_ replica.Dial, run []string) *replica.Lost {
			if len(run) >= rules {
				return nil
			}
			return droppedBy("INPUT", 1+2*len(run)) // the commands' own rules are before it
		}}, time.Minute)
		if p.Remedy != want || len(run) != 1 || strings.Count(run[0], inInput) != min(rules, mostSteps) {
			t.Errorf("%d rules: %q, ran %q", rules, p.Remedy, run)
		}
	}
}

// A command that helped a step further does not succeed in the next copy, so that nobody knows what
// the next one would do there.
func TestTryStepThatIsNotRepeated(t *testing.T) {
	for code, why := range map[int]string{late: "it did not end in time in the copy",
		1: "it failed in another copy"} {
		times := 0
		p, _ := tryOn(t, laterCopy{
			got: func(_ replica.Dial, run []string) *replica.Lost {
				return droppedBy([]string{"INPUT", "ufw-reject"}[min(len(run), 1)], 1)
			},
			code: func(script string) int {
				if script != inInput {
					return 0
				}
				times++
				return map[bool]int{true: code}[times > 1]
			}}, time.Minute)
		want := fmt.Sprintf("sudo %s; sudo %s (not tried: sudo %s: %s)", inInput, inUFW, inInput, why)
		if p.Remedy != want || p.Trial.Rejected != 1 {
			t.Errorf("code %d: %q, %d rejected", code, p.Remedy, p.Trial.Rejected)
		}
	}
}

// After a command that does not succeed in the next copy, those that need no earlier ones are tried.
func TestTryAfterStepThatIsNotRepeated(t *testing.T) {
	times := 0
	p, run := tryOn(t, laterCopy{
		got: func(_ replica.Dial, run []string) *replica.Lost {
			switch {
			case slices.Equal(run, []string{inUFW}):
				return nil
			case len(run) == 0:
				return droppedBy("ufw-reject", 1)
			}
			return droppedBy("ufw-other", 1)
		},
		code: func(script string) int {
			if script != asUFW {
				return 0
			}
			times++
			return map[bool]int{true: late}[times > 2] // alone, and as the second step after itself
		}}, time.Minute)
	if want := "sudo " + inUFW + " (tried in a copy)"; p.Remedy != want {
		t.Errorf("%q, ran %q", p.Remedy, run)
	}
}

func TestTryNotForever(t *testing.T) {
	p, _ := tryOn(t, laterCopy{
		got: func(replica.Dial, []string) *replica.Lost { return droppedBy("INPUT", 1) },
		err: func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }}, time.Second/10)
	if want := "sudo " + inInput + " (not tried: toll tries remedies for at most 100ms)"; p.Remedy != want {
		t.Errorf("%q", p.Remedy)
	}
}
