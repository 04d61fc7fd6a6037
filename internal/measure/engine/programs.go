package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/program"
	"github.com/bridgetoll/bridgetoll/internal/measure/worker"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// pair has the keepers of a path's programs. They, and the memory in which a server may keep its
// files, stay for the whole run.
type pair struct{ server, client *keeper }

type keeper struct {
	*program.Control
	process
}

// keptOutput is how much of each stream of a program's output is recorded, in bytes.
const keptOutput = 4 << 10

const keeperExit = 3 * time.Second

func (r *run) keepersOf(k key) (*pair, error) {
	if p := r.keepers[k]; p != nil {
		return p, nil
	}
	p := r.paths[k]
	server, err := startKeeper(p.Servers[0], worker.Server)
	if err != nil {
		return nil, err
	}
	client, err := startKeeper(p.Clients[0], worker.Client)
	if err != nil {
		return nil, errors.Join(err, server.stop(true, keeperExit))
	}
	r.keepers[k] = &pair{server, client}
	return r.keepers[k], nil
}

func startKeeper(place path.Place, role worker.Role) (*keeper, error) {
	p, err := place.Start(path.Command{Args: []string{program.Arg}, Apart: true})
	if err != nil {
		return nil, err
	}
	s := program.NewControl(p.In, p.Out)
	return &keeper{s, process{s, p, role}}, nil
}

// dismiss ends all programs of a path: at once if now is set, otherwise by closing the keepers'
// input, so that the error contains how a dead keeper ended.
func (r *run) dismiss(k key, now bool) error {
	p := r.keepers[k]
	if p == nil {
		return nil
	}
	delete(r.keepers, k)
	return errors.Join(p.client.stop(now, keeperExit), p.server.stop(now, keeperExit))
}

// runPrograms runs a server and then a client to its end. It reads meters and hops before and after
// the client.
func (r *run) runPrograms(ctx context.Context, k key, l sample.Program, v *sample.Visit) error {
	p := r.paths[k]
	if len(machinesOf(p)) > 0 {
		return errors.New(workload.Of(sample.Load{Kind: workload.Exec}).Apart)
	}
	both, err := r.keepersOf(k)
	if err != nil {
		return err
	}
	if p.Drain != nil { // what the last one left: its ports, in TIME_WAIT
		if _, err := p.Drain(); err != nil {
			return err
		}
	}
	v.Output = &sample.Output{}
	err = r.serve(ctx, both, p, l, v)
	if errors.Is(err, worker.ErrDied) {
		return errors.Join(err, r.dismiss(k, false))
	}
	// What a client leaves running would disturb the next visits.
	_, clientErr := both.client.Do(ctx, program.Request{Op: program.Stop})
	stopped, stopErr := both.server.Do(ctx, program.Request{Op: program.Stop})
	stopErr = errors.Join(clientErr, stopErr)
	if v.Output.Server == "" {
		v.Output.Server = stopped.Kept(keptOutput)
	}
	var keeperErr *program.Error
	if stopErr != nil || err != nil && !errors.As(err, &keeperErr) {
		_ = r.dismiss(k, true)
	}
	return errors.Join(err, stopErr)
}

func (r *run) serve(ctx context.Context, both *pair, p *path.Path, l sample.Program,
	v *sample.Visit) error {
	limit := time.Duration(l.Timeout * float64(time.Second))
	listen := program.Fill{Addr: p.Servers[0].Listen, Second: p.Second, Seconds: l.Seconds}
	_, err := both.server.Do(ctx, program.Request{
		Op: program.Start, Command: listen.Into(l.Server), Ready: l.Ready,
		Port: listen.Addr.Port(), NoRoot: l.NoRoot, Limit: limit})
	if err != nil {
		v.Output.Server = program.StateOf(err).Kept(keptOutput)
		return fmt.Errorf("server: %w", err)
	}
	hops := append(append([]path.Hop{}, p.Hops...), p.Guards...)
	before, err := path.ReadAll(hops)
	if err != nil {
		return err
	}
	arrivedBefore, err := arrived(p)
	if err != nil {
		return err
	}
	contended := r.contendPrograms(p, both)
	client, err := program.Again(l, func() (program.State, error) {
		return r.client(ctx, both, p, l, limit, v)
	}, func(pause time.Duration) error {
		return r.Clock.Sleep(ctx, r.Clock.Now()+pause.Nanoseconds())
	})
	contended()
	v.Output.Client = client.Kept(keptOutput)
	if err != nil {
		return err
	}
	after, err := path.ReadAll(hops)
	if err != nil {
		return err
	}
	arrivedAfter, err := arrived(p)
	if err != nil {
		return err
	}
	v.Proof = proof(hops, before, after, path.WitnessForeign(
		hops, before, after, arrivedAfter-arrivedBefore))
	if v.Values, err = client.Values(l); err != nil {
		return fmt.Errorf("client: %w", err)
	}
	return nil
}

// arrived returns path.Arrived's count; NaN: unknown.
func arrived(p *path.Path) (float64, error) {
	if p.Arrived == nil {
		return math.NaN(), nil
	}
	n, err := p.Arrived()
	return float64(n), err
}

func (r *run) client(ctx context.Context, both *pair, p *path.Path, l sample.Program,
	limit time.Duration, v *sample.Visit) (program.State, error) {
	pids := pidsOf(p, nil)
	served, err := both.server.Do(ctx, program.Request{Op: program.Read})
	if err != nil {
		return served, fmt.Errorf("server: %w", err)
	}
	first, err := r.readAt(ctx, 0, pids)
	if err != nil {
		return program.State{}, err
	}
	dial := program.Fill{Addr: p.Clients[0].Dial, Second: p.Second, Seconds: l.Seconds}
	st, err := both.client.Do(ctx, program.Request{
		Op: program.Start, Command: dial.Into(l.Client), NoRoot: l.NoRoot, Limit: limit})
	if err != nil {
		return st, fmt.Errorf("client: %w", err)
	}
	together := r.watchPairs(both.pids())
	st, err = both.client.Do(ctx, program.Request{Op: program.Wait, Limit: limit})
	v.Together = together()
	if err != nil {
		err = fmt.Errorf("client: %w", err)
		var hung *program.Error
		if errors.As(err, &hung) {
			_, died := ended(ctx, both, st)
			err = errors.Join(died, err)
		}
		return st, err
	}
	last, err := r.readAt(ctx, 0, pids)
	if err != nil {
		return st, err
	}
	servedNow, err := ended(ctx, both, st)
	if err != nil {
		return st, err
	}
	v.Client = sample.Party{Window: st.Elapsed.Seconds()}
	v.Server = v.Client
	if st.Known {
		v.Client.CPU = st.CPU.Seconds()
	}
	if served.Known && servedNow.Known {
		v.Server.CPU = max(0, (servedNow.CPU - served.CPU).Seconds())
	}
	v.Metered, v.Throttled = first.until(last)
	(&ends{path: p}).proxyUse(first, last, v)
	return st, nil
}

// ended returns the server's state after the client's end, and how either of them failed.
func ended(ctx context.Context, both *pair, client program.State) (program.State, error) {
	server, err := both.server.Do(ctx, program.Request{Op: program.Read})
	if err == nil {
		err = server.Died(client)
	}
	if err != nil {
		err = fmt.Errorf("server: %w", err)
	}
	if client.Exit != "" {
		client.Error = "it failed"
		err = errors.Join(err, fmt.Errorf("client: %w", &program.Error{State: client}))
	}
	return server, err
}
