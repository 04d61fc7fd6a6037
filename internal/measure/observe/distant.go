package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/measure/pipe"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

// farSpace is added to the numbers of another machine's namespaces.
const farSpace = 1 << 16

// distant is an observer on another machine, on which the servers of routes may be.
type distant struct {
	name    string
	process *path.Process
	line    *pipe.Line[news]
	gone    func() error
	denied  string // the error if toll may not capture packets there
	err     error  // why it observes nothing any more
}

// Beyond makes the Watch look for servers on another machine, too, by a process there that runs
// Serve. name is the machine's in reports; gone returns why the machine cannot be reached any more,
// or nil; denied is the error if toll may not capture packets there. Close ends the process.
func (w *Watch) Beyond(name string, p *path.Process, gone func() error, denied string) {
	w.far = &distant{name: name, process: p, line: pipe.New[news](p.In, p.Out), gone: gone,
		denied: denied}
}

// patienceFar is how long the observer may take for an order.
const patienceFar = 30 * time.Second

// do gives an order and returns the answer. If none comes, it ends the process, and every further
// call returns the same error.
func (d *distant) do(ctx context.Context, o order) (n news, err error) {
	if d.err != nil {
		return n, d.err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patienceFar,
		fmt.Errorf("it gave no answer for %s", patienceFar))
	defer cancel()
	if err = d.line.Send(o); err == nil {
		n, err = d.line.Await(ctx)
	}
	if err == nil {
		err = n.check()
	}
	if err != nil {
		if ended := d.end(); errors.Is(err, pipe.ErrDied) {
			err = cmp.Or(ended, errors.New("toll's process there ended"))
		}
		if d.gone != nil {
			if gone := d.gone(); gone != nil {
				err = gone
			}
		}
		d.err = fmt.Errorf("%s: %w", d.name, err)
		return news{}, d.err
	}
	switch {
	case n.Denied:
		return n, errors.New(d.denied)
	case n.Error != "":
		return n, fmt.Errorf("%s: %s", d.name, n.Error)
	}
	return n, nil
}

func (d *distant) end() error {
	_ = d.process.Kill()
	_ = d.line.Close()
	return d.process.Wait()
}

// close ends the process with its input, or kills it.
func (d *distant) close() {
	if d == nil || d.err != nil {
		return
	}
	const limit = 3 * time.Second
	d.err = errors.New("closed")
	ended := make(chan struct{})
	_ = d.line.Close()
	go func() { _ = d.process.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(limit):
		_ = d.process.Kill()
		<-ended
	}
}

// look calls ask while the observer looks for marked requests, if there is an observer. It returns
// what that saw, with its machine's clock. full means that its rings lost packets. unseen is why it
// saw nothing.
func (d *distant) look(ctx context.Context, o lookOrder, ask func() error) (seen []sighting,
	full bool, unseen, err error) {
	if d == nil {
		return nil, false, nil, ask()
	}
	if _, unseen = d.do(ctx, order{Look: &o}); unseen != nil {
		return nil, false, unseen, ask()
	}
	err = ask()
	n, unseen := d.do(ctx, order{Found: true})
	for _, s := range n.Sights {
		seen = append(seen, s.sighting())
	}
	return seen, n.Full, unseen, err
}

// aligned returns what was seen on both machines, with the other one's clock set so that no packet
// came before it was sent, and the fastest one at once. If none crossed, it returns what was seen
// here. An observer in a container of this machine may see where packets leave it, too: that is left
// out.
func aligned(here, there []sighting) []sighting {
	left := map[uint32]int64{}
	for _, s := range here {
		if at, ok := left[s.seq]; s.out && (!ok || s.at < at) {
			left[s.seq] = s.at
		}
	}
	crossed, ahead := false, int64(0)
	for _, s := range there {
		if at, ok := left[s.seq]; ok && !s.out && (!crossed || s.at-at < ahead) {
			crossed, ahead = true, s.at-at
		}
	}
	if !crossed {
		return here
	}
	own := map[int]bool{}
	for i := range there {
		s := &there[i]
		s.at -= ahead
		if at, ok := left[s.seq]; ok && s.out && s.at < at {
			own[s.space] = true
		}
	}
	out := here
	for _, s := range there {
		if !own[s.space] {
			out = append(out, s)
		}
	}
	return out
}

// take tells the observer the hops of a route, all of which are on its machine, and describes them.
func (d *distant) take(ctx context.Context, name string, r *route) error {
	o := &takeOrder{Route: name}
	for _, h := range r.hops {
		o.Hops = append(o.Hops, farHop{Space: h.space - farSpace, To: h.to, Sealed: h.sealed,
			Protocol: h.protocol})
	}
	n, err := d.do(ctx, order{Take: o})
	if err != nil {
		return err
	}
	if len(n.Hops) == 0 || len(n.Hops) > len(r.hops) {
		return fmt.Errorf("%s: %w: other hops", d.name, errNonsense)
	}
	r.hops, r.server = nil, n.Server
	for _, h := range n.Hops {
		h.About.Machine = d.name
		r.hops = append(r.hops, hop{space: farSpace + h.Space, to: h.To, sealed: h.Sealed,
			about: h.About})
	}
	return nil
}

// account is what an observer on another machine says of a visit.
type account struct {
	pools        [][]tokens.Seen // by hop, by its clock
	others, lost int
	moved        float64
	stopped      []float64
	counts       map[string]int64
}

// fetch returns what the observer saw of a visit.
func (d *distant) fetch(ctx context.Context, hops int, o endOrder) (a account, err error) {
	a.pools = make([][]tokens.Seen, hops)
	n, err := d.do(ctx, order{End: &o})
	a.others, a.lost, a.moved, a.stopped = n.Others, n.Lost, n.Moved, n.Stopped
	a.counts = n.Counts
	for ; err == nil; n, err = d.do(ctx, order{More: true}) {
		for _, s := range n.Seen {
			if s.Hop >= hops {
				return a, fmt.Errorf("%s: %w: hop %d", d.name, errNonsense, s.Hop)
			}
			a.pools[s.Hop] = append(a.pools[s.Hop], s.Seen)
		}
		if !n.More {
			break
		}
	}
	if err == nil && len(a.stopped) != hops {
		err = fmt.Errorf("%s: %w: other hops", d.name, errNonsense)
	}
	return a, err
}

// textsOf returns the whole texts of responses, each once.
func textsOf(all []*asked) (out []openai.Text) {
	seen := map[openai.Text]bool{}
	for _, a := range all {
		if n := len(a.Texts); n > 0 && !seen[a.Texts[n-1]] && len(seen) < mostTexts {
			seen[a.Texts[n-1]] = true
			out = append(out, a.Texts[n-1])
		}
	}
	return out
}
