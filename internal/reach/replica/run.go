package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
)

// Command is a shell command to run in a copy.
type Command struct {
	Script []byte `json:"script"`    // for /bin/sh -c; JSON has no text that is not UTF-8
	Space  int    `json:"namespace"` // where it starts, an index in Machine.Spaces
	// Alone means that the script uses and changes no other namespace. It then finds none.
	Alone bool `json:"alone,omitempty"`
}

// Output is the result of a Command.
type Output struct {
	// Code is the exit code: 0 if the command succeeded; 128 plus the number of the signal that
	// ended it; 124 if it was killed because it took longer than 10 s.
	Code     int    `json:"code"`
	Text     string `json:"text"`          // standard output and error, at most 64 KiB; not printable
	Cut      bool   `json:"cut,omitempty"` // there was more text
	TimedOut bool   `json:"timed_out,omitempty"`
	// Modules lists kernel modules that were loaded on this machine meanwhile, maybe for the
	// command.
	Modules []string `json:"modules,omitempty"`
}

// TooLarge reports whether the command may have failed only because it runs in a user namespace:
// there the kernel refuses to send it many rules at once, which it allows root of the machine.
func (o Output) TooLarge() bool {
	return o.Code != 0 && strings.Contains(o.Text, "Message too long")
}

// NoJailError means that commands cannot be run in the copy, because they could not be confined to
// it.
type NoJailError struct{ Reason error }

func (e *NoJailError) Error() string {
	return fmt.Sprintf("cannot try commands in a copy: %v", e.Reason)
}
func (e *NoJailError) Unwrap() error { return e.Reason }

// Hint returns the reason's remedy or, if it has none, where else to try commands.
func (e *NoJailError) Hint() string {
	return cmp.Or(hint.Of(e.Reason),
		"another machine may try them on a file of toll ports --save, by --from-file")
}

// Run runs a shell command in the copy, as root of the copy, for example
//
//	script := []byte("iptables -I INPUT -p tcp --dport 80 -j DROP")
//	out, err := s.Run(ctx, replica.Command{Script: script})
//
// after which Dial shows what it changed, as if no connection had been made before. There is no way
// back but a new Session. Nothing outside the copy changes. The command finds this machine's
// programs, /etc and the current directory, whose files it may change for itself only, and the
// copied namespaces, as nsenter -t PID -n by Space.PID and ip -n NAME by Space.Names. It finds no
// other processes, and no daemon can be asked: docker, systemctl and firewall-cmd fail. All
// processes that it leaves behind are killed.
//
// A command that fails has an Output.Code; then err is nil. err wraps a *NoJailError, and nothing
// was run, if the command cannot be confined. After other errors the Session is unusable.
//
// If the Session has two copies (see Start), the command runs in both, and the Output is that of
// the copy in which it failed, if in any. After a command that makes rules which cannot be copied,
// the Session has two.
func (s *Session) Run(ctx context.Context, c Command) (Output, error) {
	if c.Space < 0 || c.Space >= len(s.machine.Spaces) {
		return Output{}, fmt.Errorf("there is no namespace %d", c.Space)
	}
	if err := s.Jailed(); err != nil {
		return Output{}, err
	}
	before := loaded()
	s.ran = append(s.ran, c)
	got := make([]reply, len(s.copies))
	err := s.each(func(i int) (err error) {
		got[i], err = s.copies[i].ask(ctx, requestTimeout, request{Run: &c})
		return err
	})
	if err != nil {
		return Output{}, err
	}
	out := got[0].Output
	for _, r := range got {
		if r.NoJail != "" {
			return Output{}, &NoJailError{errors.New(r.NoJail)}
		}
		if out.Code == 0 {
			out = r.Output
		}
	}
	if err := s.split(ctx); err != nil {
		return Output{}, err
	}
	for _, name := range loaded() {
		if before != nil && !slices.Contains(before, name) {
			out.Modules = append(out.Modules, name)
		}
	}
	return out, nil
}

// Jailed returns a *NoJailError if the copy is known to have no jail for commands.
func (s *Session) Jailed() error {
	for _, x := range s.copies {
		if x.open != nil {
			return &NoJailError{x.open}
		}
	}
	return nil
}

// split makes copies differ by the doubtful rules that commands made. If there is one copy, it
// makes another one, and runs there what ran in the first.
func (s *Session) split(ctx context.Context) error {
	r, err := s.copies[0].ask(ctx, requestTimeout, request{Doubts: true})
	if err != nil || len(r.Doubts) == 0 {
		return err
	}
	if len(s.copies) == 1 {
		second, err := s.copy(ctx, AsIs, nil)
		if err != nil {
			return err
		}
		s.copies = append(s.copies, second)
		for _, c := range s.ran {
			r, err := second.ask(ctx, requestTimeout, request{Run: &c})
			if err == nil && r.NoJail != "" {
				err = &NoJailError{errors.New(r.NoJail)}
			}
			if err != nil {
				return err
			}
		}
	}
	if s.added == nil {
		s.added = map[int][]xtables.Doubt{}
	}
	for _, d := range r.Doubts {
		s.added[d.Space] = append(s.added[d.Space], d.Rules...)
	}
	return s.each(func(i int) error {
		_, err := s.copies[i].ask(ctx, requestTimeout, request{Assume: []Variant{Lenient, Strict}[i]})
		return err
	})
}

// Now returns the machine as it is in the copy after Run: its devices, addresses, routes and
// parameters, and what Singled returns. It is not this machine, and has no texts: see ReadText.
func (s *Session) Now(ctx context.Context) (*Machine, error) {
	r, err := s.copies[0].ask(ctx, requestTimeout, request{Now: true})
	if err != nil {
		return nil, err
	}
	m := &Machine{Arch: s.machine.Arch, Kernel: s.machine.Kernel,
		Spaces: slices.Clone(s.machine.Spaces), singled: &r.Singled}
	for i := range m.Spaces {
		to := &m.Spaces[i]
		to.Text = nil
		if i < len(r.Now) {
			from := r.Now[i]
			to.Links, to.Addresses, to.Sysctls = from.Links, from.Addresses, from.Sysctls
			to.Nexthops, to.Routes = from.Nexthops, from.Routes
		}
	}
	return m, nil
}

// ReadText reads the texts of a namespace's rules in the copy into m, which Now returned, unless m
// has them.
func (s *Session) ReadText(ctx context.Context, m *Machine, space int) error {
	if m.Spaces[space].Text != nil {
		return nil
	}
	r, err := s.copies[0].ask(ctx, requestTimeout, request{Text: &space})
	m.Spaces[space].Text = r.Text
	return err
}

// loaded lists the kernel's modules; nil: they cannot be listed.
func loaded() (out []string) {
	all, err := os.ReadFile("/proc/modules")
	if err != nil {
		return nil
	}
	out = []string{}
	for line := range strings.Lines(string(all)) {
		name, _, _ := strings.Cut(line, " ")
		out = append(out, name)
	}
	return out
}

// InCopy reports whether commands that run in a copy find the file of this machine.
func InCopy(file string) bool {
	resolve := func(name string) (string, error) {
		name, err := filepath.EvalSymlinks(name)
		if err != nil {
			return "", err
		}
		return filepath.Abs(name)
	}
	file, err := resolve(file)
	return err == nil && slices.ContainsFunc([]string{".", "/bin", "/etc", "/gnu", "/nix", "/opt",
		"/sbin", "/usr", "/usr/local"}, func(dir string) bool {
		dir, err := resolve(dir)
		return err == nil && strings.HasPrefix(file, dir+"/")
	})
}
