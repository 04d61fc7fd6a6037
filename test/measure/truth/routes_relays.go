package truth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	judged "github.com/bridgetoll/bridgetoll/internal/judge/trace"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// programArg makes this process another program, besideArg one that runs on the first CPU.
const programArg, besideArg = "program", "beside"

// relayedModes are the lab's paths to a published port, with the programs of engines.
var relayedModes = []struct {
	name string
	mode mode.Name
}{{"docker-proxy", mode.PublishProxy}, {"NAT", mode.PublishNAT},
	{"RootlessKit", mode.RootlessPublish}, {"pasta", mode.Pasta}}

// sums shows that the parts which toll trace ADDRESS finds in a route add up to what the route adds
// without captures.
func (t *trial) sums(ctx context.Context) (table, error) {
	out := table{title: "Traces of routes: sums",
		text: fmt.Sprintf("`toll trace plain=… published=…` to a server beside the client, and to "+
			"one in a container behind a published port of the lab, %d traces of %s each. A trace "+
			"agrees if the interval of what it cannot attribute has 0 in it. A row holds if as "+
			"many do as 95 %% intervals let, but for a chance of %.1f %%. It is unclear if their mean "+
			"is not known to within %.0f %% of what the route adds.", t.scale.tracePlant.n, t.scale.tracePlant.each, percent*missRisk,
			percent*plantedShare),
		head: []string{"over", "adds, µs", "not attributed, µs", "agree"}}
	for _, m := range relayedModes {
		spec := path.Spec{Mode: m.mode, From: mode.FromHost, To: mode.ToLoopback}
		if err := t.lab.Check(ctx, spec); err != nil {
			out.add(noWord, m.name, "not here: "+path.OneLine(err), "", "")
			continue
		}
		s, err := t.sumsOver(ctx, spec)
		if ctx.Err() != nil {
			return table{}, err
		}
		if err != nil { // others may still add up
			t.say("trace-routes: %s: %v", m.name, err)
			out.add(no, m.name, firstLine(err.Error()), "", "")
			continue
		}
		out.add(s.verdict(), m.name, mean(s.adds).String(), mean(s.rest).String(),
			fmt.Sprintf("%d of %d", s.agree, len(s.rest)))
	}
	return out, nil
}

// summed has what traces say that a route adds, and what they could not attribute of that.
type summed struct {
	adds, rest []amount
	agree      int
}

func (s *summed) add(r *judged.Report) error {
	x, err := traceOf(r, "published")
	if err != nil {
		return err
	}
	if x.Unattributed.N == 0 {
		return errors.New("the run was too short for what the route adds without captures")
	}
	s.adds, s.rest = append(s.adds, amountOf(x.Untraced)), append(s.rest, amountOf(x.Unattributed))
	if x.Unattributed.Low <= 0 && x.Unattributed.High >= 0 {
		s.agree++
	}
	return nil
}

// verdict tests whether the parts add up in as many traces as their intervals promise. Wide
// intervals do not show that: what is not attributed could be most of what the route adds.
func (s *summed) verdict() verdict {
	v := holdsIf(len(s.rest) > 0 && s.agree >= least(len(s.rest), stats.Confidence, missRisk))
	if mean(s.rest).half > plantedShare*math.Abs(mean(s.adds).at) {
		v = worst(v, unclear)
	}
	return v
}

// sumsOver traces the requests to a server at the end of a path.
func (t *trial) sumsOver(ctx context.Context, spec path.Spec) (s summed, err error) {
	p, err := t.lab.Build(ctx, spec)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	client, server := p.Clients[0], p.Servers[0]
	plain := netip.AddrPortFrom(spec.Loopback(), client.Dial.Port()+1)
	for _, end := range []struct {
		path.Place
		at netip.AddrPort
	}{{server.Place, server.Listen}, {client.Place, plain}} {
		stop, err := answerAt(end.Place, end.at)
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	toll, err := filepath.Abs(t.toll)
	if err != nil {
		return s, err
	}
	for i := range t.scale.tracePlant.n {
		run, err := client.Start(path.Command{Env: []string{"TOLL_HISTORY=off"},
			Args: append([]string{programArg, toll}, t.traceArgs("published", plain.String(),
				client.Dial.String(), t.seed+uint64(i))...)})
		if err != nil {
			return s, err
		}
		end := context.AfterFunc(ctx, func() { _ = run.Kill() })
		said, errRead := io.ReadAll(run.Out)
		errRun := reported(run.Wait())
		end()
		if err := errors.Join(errRead, errRun); err != nil {
			return s, err
		}
		r, err := readTrace(said)
		if err == nil {
			err = s.add(r)
		}
		if err != nil {
			return s, err
		}
		t.say("trace-routes: %s: run %d of %d: adds %s, not attributed %s", spec.Mode, i+1,
			t.scale.tracePlant.n, s.adds[i], s.rest[i])
	}
	return s, nil
}

// answerAt starts a server in a place, and returns once it listens.
func answerAt(at path.Place, addr netip.AddrPort) (stop func() error, err error) {
	how, err := json.Marshal(answering{Spin: routeSpin})
	if err != nil {
		return nil, err
	}
	run, err := at.Start(path.Command{Args: []string{answerArg, string(how),
		net.JoinHostPort(addr.Addr().String(), strconv.Itoa(int(addr.Port())))}})
	if err != nil {
		return nil, err
	}
	stop = func() error {
		err := run.Kill()
		_ = run.Wait()
		return err
	}
	if _, err := io.ReadFull(run.Out, make([]byte, 1)); err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}

// program replaces this process by another program.
func program(args []string) error { return syscall.Exec(args[0], args, os.Environ()) }
