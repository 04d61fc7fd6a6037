package collect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// mostSteps is the largest number of commands that together admit a client.
const mostSteps = 3

// session is a copy of the machine, as replica.Session.
type session interface {
	Run(context.Context, replica.Command) (replica.Output, error)
	Dial(context.Context, []replica.Dial) ([]replica.Answer, error)
	Close() error
}

// trials tries commands that may admit clients, each in a fresh copy.
type trials struct {
	c     *ports.Copy
	start func(context.Context) (session, error)
	list  bool // the report has all ports
	// unchanged is the copy of the report, and others has the connections to other ports there, once
	// compared has returned; nil: they are not compared.
	unchanged session
	others    *ports.Copy
	compared  func()
	last      *state // of the search that is not finished; nil: none

	mu sync.Mutex // held while c or others is used by one of several searches
}

// atOnce is the number of searches at the same time. Most of the time they wait for answers.
const atOnce = 3

// locked calls f while no other search uses t.c or t.others.
func (t *trials) locked(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
}

// ahead makes a copy before it is needed.
type ahead struct {
	mu   sync.Mutex
	made chan made // nil: none is being made
}

type made struct {
	session session
	err     error
}

// begin begins to make the next copy, unless that was begun.
func (a *ahead) begin(ctx context.Context, start func(context.Context) (session, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.made != nil {
		return
	}
	to := make(chan made, 1)
	a.made = to
	go func() {
		s, err := start(ctx)
		to <- made{s, err}
	}()
}

// take returns the copy that is being made, or a zero one if none is.
func (a *ahead) take() (got made) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.made != nil {
		got, a.made = <-a.made, nil
	}
	return got
}

// tryRemedies tries commands for the connections that are lost, one connection for each cause, and
// for traps, for at most limit. In the list (port 0) it tries only those that are printed there. It
// returns an error only if ctx ends.
func tryRemedies(ctx context.Context, c *ports.Copy, unchanged *replica.Session, port uint16,
	limit time.Duration) error {
	t := trials{c: c, unchanged: unchanged, list: port == 0,
		start: func(ctx context.Context) (session, error) {
			s, err := unchanged.Again(ctx)
			if err != nil {
				return nil, err
			}
			return s, nil
		}}
	return t.run(ctx, limit)
}

// compare makes connections to other ports in the unchanged copy, at the same time as the first
// search. It returns a function that waits until they are made.
func (t *trials) compare(ctx context.Context) (wait func()) {
	var made sync.WaitGroup
	if t.list || len(t.c.Losing(false)) == 0 {
		return made.Wait
	}
	if t.others = t.c.Others(); t.others == nil {
		return made.Wait
	}
	made.Go(func() {
		answers, err := t.unchanged.Dial(ctx, t.others.AllDials())
		if err != nil {
			t.others = nil
			return
		}
		t.locked(func() { t.others.Take(answers) })
	})
	return made.Wait
}

// effects compares all connections in a changed copy with those in the unchanged one. A difference
// counts if it shows twice, because a busy machine may lose packets, or if a rule or route is known
// that lost the packets before.
func (t *trials) effects(ctx context.Context, changed session) ([]ports.Effect, error) {
	t.compared()
	all := []*ports.Copy{t.c}
	if t.others != nil {
		all = append(all, t.others)
	}
	answers, err := t.dialEach(ctx, changed, all, (*ports.Copy).AllDials)
	if err != nil {
		return nil, err
	}
	out := make([]ports.Effect, len(all))
	lost, gained := make([][]int, len(all)), make([][]int, len(all))
	t.locked(func() {
		for i, c := range all {
			out[i] = c.Effect(answers[i])
			lost[i], gained[i] = out[i].Lost, c.Unexplained(out[i].Gained)
		}
	})
	var both sync.WaitGroup
	var missing, got [][]replica.Answer
	var errs [2]error
	both.Go(func() { missing, errs[0] = t.dialEach(ctx, changed, all, againOf(all, lost)) })
	both.Go(func() { got, errs[1] = t.dialEach(ctx, t.unchanged, all, againOf(all, gained)) })
	both.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	t.locked(func() {
		for i, c := range all {
			out[i].Lost = c.LostAgain(lost[i], missing[i])
			real := c.LostAgain(gained[i], got[i])
			out[i].Gained = slices.DeleteFunc(out[i].Gained, func(j int) bool {
				return slices.Contains(gained[i], j) && !slices.Contains(real, j)
			})
		}
	})
	return out, nil
}

// againOf returns a function for dialEach that makes those connections of each plan again that
// which has.
func againOf(all []*ports.Copy, which [][]int) func(*ports.Copy) []replica.Dial {
	return func(c *ports.Copy) []replica.Dial { return c.Again(which[slices.Index(all, c)]) }
}

// dialEach makes connections of several plans at once, and returns the answers to each plan's.
func (t *trials) dialEach(ctx context.Context, s session, all []*ports.Copy,
	of func(*ports.Copy) []replica.Dial) ([][]replica.Answer, error) {
	var dials []replica.Dial
	var ends []int
	t.locked(func() {
		for _, c := range all {
			dials = append(dials, of(c)...)
			ends = append(ends, len(dials))
		}
	})
	answers, err := s.Dial(ctx, dials)
	if err != nil {
		return nil, err
	}
	out := make([][]replica.Answer, len(all))
	first := 0
	for i, end := range ends {
		out[i], first = answers[first:end], end
	}
	return out, nil
}

func (t *trials) run(ctx context.Context, limit time.Duration) error {
	late := fmt.Errorf("toll tries remedies for at most %s", limit.Round(time.Second/10))
	within, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	t.compared = t.compare(within)
	defer t.compared()
	err := t.admit(within)
	if err == nil {
		err = t.endTraps(within)
	}
	switch none, ok := errors.AsType[*replica.NoJailError](err); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case within.Err() != nil:
		err = late
	case ok:
		err = none.Reason
	}
	t.c.Untried = printable.Words(err.Error())
	if s := t.last; s != nil {
		t.c.Unfinished(s.of, s.rejected, s.trying, t.c.Untried)
	}
	return nil
}

// admit tries commands that may admit clients, for several causes at the same time. It records the
// results in the order of Losing, without those for a client whom commands for an earlier one
// admit.
func (t *trials) admit(ctx context.Context) error {
	losing := t.c.Losing(t.list)
	for {
		which := t.c.Unsettled(losing, atOnce)
		if len(which) == 0 {
			return nil
		}
		searches, got := make([]*state, len(which)), make([]*found, len(which))
		for k, i := range which {
			searches[k] = &state{of: i, places: []any{t.c.Place(i)}}
		}
		errs := t.together(len(which), func(k int) (err error) {
			got[k], err = t.search(ctx, searches[k])
			return err
		})
		var failed error
		for k, s := range searches {
			if t.c.Settled(s.of) {
				continue
			}
			missing, ok := errors.AsType[*missingError](errs[k])
			switch {
			case ok:
				t.c.Unfinished(s.of, s.rejected, missing.commands, missing.why)
			case errs[k] != nil && failed == nil:
				failed, t.last = errs[k], s
			case errs[k] != nil:
			case got[k] == nil:
				t.c.Rejected(s.of, s.rejected)
			default:
				t.c.Admitted(s.of, got[k].commands, s.rejected, got[k].effects...)
			}
		}
		if failed != nil {
			return failed
		}
	}
}

// together calls f for each number below n, for atOnce at the same time, and returns the errors.
func (t *trials) together(n int, f func(k int) error) []error {
	errs := make([]error, n)
	turn := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for k := range n {
		turn <- struct{}{}
		all.Go(func() {
			errs[k] = f(k)
			<-turn
		})
	}
	all.Wait()
	return errs
}

// endTraps tries commands that may end traps.
func (t *trials) endTraps(ctx context.Context) error {
	all := t.c.TrapTrials()
	return errors.Join(t.together(len(all), func(k int) error {
		s := &state{}
		answers, err := t.after(ctx, s, all[k])
		if err = errors.Join(err, s.close()); err != nil {
			return err
		}
		why := ""
		if s.missing != nil {
			why = s.missing.why
		}
		t.locked(func() { t.c.TrapTried(all[k], answers, why) })
		return nil
	})...)
}

// after returns the answers to a trap's connections after its commands. It returns none if a
// command failed.
func (t *trials) after(ctx context.Context, s *state, x ports.TrapTrial) ([]replica.Answer, error) {
	if err := t.change(ctx, s, nil); err != nil {
		return nil, err
	}
	for _, command := range x.Commands {
		out, err := s.session.Run(ctx, command.Script())
		switch {
		case err != nil:
			return nil, err
		case unable(command.Script(), out) != "":
			s.missing = &missingError{x.Commands, unable(command.Script(), out)}
			return nil, nil
		case out.Code != 0:
			return nil, nil
		}
	}
	return s.session.Dial(ctx, x.Dials)
}

// found has the commands that admit a client, and what they change.
type found struct {
	commands []ports.Command
	effects  []ports.Effect
}

// state is what one search has done so far.
type state struct {
	of       int             // the connection
	trying   []ports.Command // those of the present step
	places   []any
	rejected int
	session  session       // changed by the commands of the present step; nil: to be made
	ahead    ahead         // the next session
	missing  *missingError // the first command that could not be tried; nil: none
}

// close ends the copies that are left.
func (s *state) close() error {
	var errs [2]error
	if s.session != nil {
		errs[0] = s.session.Close()
	}
	if next := s.ahead.take().session; next != nil {
		errs[1] = next.Close()
	}
	return errors.Join(errs[:]...)
}

// missingError means that this machine cannot try commands.
type missingError struct {
	commands []ports.Command
	why      string
}

func (e *missingError) Error() string { return e.why }

// search returns the commands that admit the client of a connection, or nil if there are none.
func (t *trials) search(ctx context.Context, s *state) (*found, error) {
	ctx, cancel := context.WithCancel(ctx)
	var candidates []ports.Command
	t.locked(func() { candidates = t.c.Candidates(s.of) })
	got, err := t.step(ctx, s, nil, candidates)
	cancel() // the copy that is not needed
	err = errors.Join(err, s.close())
	if err == nil && got == nil && s.missing != nil {
		err = s.missing
	}
	return got, err
}

// step tries the candidates, in order, in copies changed by the commands done before.
func (t *trials) step(ctx context.Context, s *state, done, candidates []ports.Command) (*found,
	error) {
	for _, x := range candidates {
		s.trying = append(done[:len(done):len(done)], x)
		got, err := t.candidate(ctx, s, done, x)
		if missing, ok := errors.AsType[*missingError](err); ok {
			s.missing = cmp.Or(s.missing, missing)
			err = nil
		}
		if got != nil || err != nil {
			return got, err
		}
		if s.session != nil {
			err := s.session.Close()
			if s.session = nil; err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// candidate tries one candidate in the copy at hand or, if there is none, in a fresh one. It returns
// a *missingError if this machine cannot try it.
func (t *trials) candidate(ctx context.Context, s *state, done []ports.Command, x ports.Command) (
	*found, error) {
	commands := s.trying
	if s.session == nil {
		if err := t.change(ctx, s, done); err != nil {
			return nil, err
		}
	}
	out, err := s.session.Run(ctx, x.Script())
	if err != nil {
		return nil, err
	}
	if out.Code != 0 {
		if why := unable(x.Script(), out); why != "" {
			return nil, &missingError{commands, why}
		}
		s.rejected++
		return nil, nil
	}
	missing := s.missing
	got, err := t.dial(ctx, s, commands)
	if got == nil && err == nil && s.missing == missing { // else it is one of those that are missing
		s.rejected++
	}
	return got, err
}

// noProgram is the shell's exit code if it does not find a program.
const noProgram = 127

// unable returns why this machine cannot try a command, or "" if it can.
func unable(c replica.Command, out replica.Output) string {
	program, _, _ := strings.Cut(string(c.Script), " ")
	switch {
	case out.Code == noProgram && replica.ProgramFile(program) != "":
		return "the copy's shell does not find a program that it needs"
	case out.Code == noProgram:
		return "the program is not installed here"
	case out.TooLarge():
		return "the copy's kernel refuses so many rules at once"
	case out.TimedOut:
		return "it did not end in time in the copy"
	}
	return ""
}

// change takes a fresh copy and runs commands in it that succeeded before. It returns a
// *missingError if one does not succeed now.
func (t *trials) change(ctx context.Context, s *state, done []ports.Command) error {
	s.ahead.begin(ctx, t.start)
	x := s.ahead.take()
	if s.session = x.session; x.err != nil {
		return x.err
	}
	for _, d := range done {
		out, err := s.session.Run(ctx, d.Script())
		if err != nil {
			return err
		}
		if out.Code != 0 {
			why := cmp.Or(unable(d.Script(), out), "it failed in another copy")
			return &missingError{s.trying, d.Text + ": " + why}
		}
	}
	return nil
}

// answersWithin is how long a connection takes that is not lost. If it takes longer, another
// command will probably be tried.
const answersWithin = 100 * time.Millisecond

// dial makes the connection in the changed copy. If it is lost in another place, dial tries the
// candidates for that.
func (t *trials) dial(ctx context.Context, s *state, commands []ports.Command) (*found, error) {
	var dials []replica.Dial
	t.locked(func() { dials = t.c.DialsOf(s.of) })
	dials[0].Explain, dials[0].OnlyLost = true, true
	late := time.AfterFunc(answersWithin, func() { s.ahead.begin(ctx, t.start) })
	defer late.Stop()
	answers, err := s.session.Dial(ctx, dials[:1])
	if err != nil {
		return nil, err
	}
	if !t.through(s.of, answers...) {
		late.Stop()
		if len(commands) == mostSteps {
			return nil, nil
		}
		if !answers[0].Explained() { // it is refused
			dials[0].OnlyLost = false
			if answers, err = s.session.Dial(ctx, dials[:1]); err != nil {
				return nil, err
			}
		}
		var next []ports.Command
		var place any
		t.locked(func() { next, place = t.c.Further(s.of, commands, answers[0], s.places) })
		if len(next) == 0 {
			return nil, nil
		}
		s.places = append(s.places, place)
		return t.step(ctx, s, commands, next)
	}
	if answers, err = s.session.Dial(ctx, dials[1:]); err != nil {
		return nil, err
	}
	late.Stop()
	if !t.through(s.of, answers...) {
		return nil, nil // only the first address was admitted
	}
	effects, err := t.effects(ctx, s.session)
	return &found{commands, effects}, err
}

// through reports whether a connection gets to a server, by all answers.
func (t *trials) through(of int, answers ...replica.Answer) (all bool) {
	t.locked(func() {
		all = !slices.ContainsFunc(answers, func(a replica.Answer) bool { return !t.c.Through(of, a) })
	})
	return all
}
