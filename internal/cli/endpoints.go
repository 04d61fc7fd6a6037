package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/measure/endpoint"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/peer"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/reach/collect"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/view"
)

type places struct {
	from []*vantage.Vantage
	peer *peer.Peer      // nil if neither a place nor a server is on the peer
	pod  cluster.Backend // nil: the server is in no pod
}

// reach starts an agent on the peer. close ends it.
func (p places) reach(ctx context.Context) (endpoint.Peer, error) {
	a, about, err := p.peer.Agent(ctx)
	if err != nil {
		return endpoint.Peer{}, err
	}
	return endpoint.Peer{Place: a, About: about, Err: a.Err,
		Denied: "toll must be root on " + a.Name() + " to capture packets there (--peer " +
			"root@…, or --peer-sudo)"}, nil
}

// enter calls enterEngine for Docker and Podman if one of the places is in a container.
func (p places) enter(ctx context.Context) (entered bool, err error) {
	if !slices.ContainsFunc(p.from, (*vantage.Vantage).Contained) {
		return false, nil
	}
	for _, podman := range []bool{false, true} {
		if entered, err = enterEngine(ctx, podman); entered {
			return true, err
		}
	}
	return false, nil
}

func (p places) close() (err error) {
	if p.pod != nil {
		err = p.pod.Close()
	}
	if p.peer != nil {
		err = errors.Join(err, p.peer.Close())
	}
	return err
}

// endpoints measures the endpoints of w, with the request's study, loads and trace.
func (f *runFlags) endpoints(c *cobra.Command, e env, w endpoint.Asker, r plan.Request,
	from places) (err error) {
	if f.quiet {
		defer sayNothing()()
	}
	if err := errors.Join(f.checkLive(), f.out.check(place{saveFlag, f.save})); err != nil {
		return err
	}
	r = f.timing.into(r, c.Flags())
	if r.Baseline, err = f.baselineOf(c.Flags(), w.Names()); err != nil {
		return err
	}
	p, err := plan.Endpoints(r, w.Names())
	if err != nil {
		return usage(err, "")
	}
	if f.dryRun {
		return f.out.print(e, view.Plan(p, nil))
	}
	if entered, err := from.enter(c.Context()); entered {
		return err
	}
	end, err := vantage.Open(c.Context(), "", from.from)
	if err != nil {
		if stop := interrupted(c.Context()); stop != nil {
			return stop
		}
		return &failure{exitNothing, err, ""}
	}
	defer func() {
		if left := end(); left != nil {
			err = errors.Join(err, left)
		}
	}()
	defer func() { err = errors.Join(err, from.close()) }()
	defer func() { err = errors.Join(err, w.Close()) }() // before the places are closed
	before, err := beforeRequests(c.Context(), from)
	if err == nil {
		err = w.Check(c.Context())
	}
	newProgress(e.stderr, f.quiet).clear()
	if err != nil {
		if stop := interrupted(c.Context()); stop != nil {
			return stop
		}
		return &failure{exitNothing, err, statusHint(err)}
	}
	var frames []*sample.Frames // which the results file has, too
	for _, p := range w.Paths() {
		frames = append(frames, p.Frames)
	}
	tryFrames(c.Context(), frames...)
	return f.measure(c, e, engine.Config{Plan: p, Endpoints: w, Before: before})
}

// baselineOf returns the endpoint that others are compared with: the first unless the user named
// one.
func (f *targets) baselineOf(fl *pflag.FlagSet, names []string) (mode.Name, error) {
	switch {
	case !fl.Changed("baseline"):
		return mode.Name(names[0]), nil
	case !slices.Contains(names, f.baseline):
		return "", usage(fmt.Errorf("--baseline %s: no such endpoint", f.baseline),
			"the endpoints are: "+strings.Join(names, ", "))
	}
	return mode.Name(f.baseline), nil
}

type placeFlags struct {
	from       []string
	ipv4, ipv6 bool
	peer       peerFlags
	// beyond means that servers may also be looked for on the peer, or on the node of a pod.
	beyond bool
	pod    podFlags
}

func (f *placeFlags) add(fl *pflag.FlagSet) {
	addFrom(fl, &f.from, mode.OfServers, mode.FromHost)
	peerHelp := "peer: [user@]HOST[:PORT], another machine, which ssh reaches (--from remote may " +
		"be left out"
	if f.beyond {
		peerHelp += "; with --from host, the server is looked for there, as root"
	}
	addFamilies(fl, &f.ipv4, &f.ipv6, "dial names")
	add(fl,
		flagDef{name: peerFlag, group: where, value: text(&f.peer.host, ""), word: "HOST",
			help: peerHelp + ")", main: "stream sql", use: trusts})
	f.peer.how.add(fl)
	if f.beyond {
		f.pod.add(fl)
	}
}

func (f *placeFlags) ask(fl *pflag.FlagSet, c endpoint.Client, at []endpoint.Address,
	example string) (endpoint.Asker, places, error) {
	at, err := endpoint.ByFamily(at, endpoint.Families{Four: f.ipv4, Six: f.ipv6})
	if err != nil {
		return nil, places{}, usage(err, "leave -4 and -6 out, or give an address")
	}
	at, from, err := fromPlaces(at, f.from, fl, &f.peer, f.beyond)
	if err != nil {
		return nil, from, err
	}
	c.Reach = from.reach
	switch from.pod = f.pod.backend(); {
	case from.pod != nil:
		c.Beyond = from.observe
	case f.beyond && from.peer != nil:
		c.Beyond = from.reach
	}
	w, err := endpoint.New(c, at)
	if err != nil {
		return nil, from, usage(err, cmp.Or(hintOf(err, err), example))
	}
	return w, from, nil
}

// fromPlaces returns the endpoints with the places that --from names. --peer without --from adds
// the peer as a place. beyond permits a peer that is no place.
func fromPlaces(at []endpoint.Address, words []string, fl *pflag.FlagSet, p *peerFlags,
	beyond bool) ([]endpoint.Address, places, error) {
	if p.host != "" && !fl.Changed("from") {
		words = []string{vantage.Remote}
	}
	var out places
	all, err := parseAll(words, mode.OfServers.Parse)
	if err != nil {
		hint := hintOf(err, err) + "; docker ps and docker network ls list the names"
		return nil, out, usage(err, strings.Replace(hint, "?;", "?", 1))
	}
	for _, p := range all {
		out.from = append(out.from, vantage.New(p))
	}
	if len(out.from) == 0 {
		return nil, out, usage(errors.New("--from is empty"), "--from host")
	}
	const example = "--peer [user@]HOST[:PORT], as for ssh"
	switch distant := slices.ContainsFunc(out.from, (*vantage.Vantage).Distant); {
	case distant && p.host == "":
		return nil, out, usage(errors.New("--from remote needs --peer"), example)
	case !distant && (p.host != "" || p.how != peerHow{}) && (!beyond || p.host == ""):
		return nil, out,
			usage(errors.New("--peer needs remote in --from"),
				"--from host,remote")
	case p.host != "":
		if err := p.check(); err != nil {
			return nil, out, err
		}
		out.peer = p.machine()
	}
	return endpoint.From(at, out.from), out, nil
}

func statusHint(err error) string {
	var status *openai.StatusError
	if !errors.As(err, &status) {
		return ""
	}
	switch status.Code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "--secret-env NAME, with the key in the environment variable NAME"
	case http.StatusServiceUnavailable:
		return "it may still be loading its model: wait, and run again"
	}
	return ""
}

// parseEndpoints parses [NAME=]ADDRESS. what is the word for such an argument, example a command
// line for hints.
func parseEndpoints(words []string, command, what, example string) ([]endpoint.Address, error) {
	if len(words) == 0 {
		return nil, usage(fmt.Errorf("%s takes at least one %s", command, what), example)
	}
	if urls := asURLs(command, words); urls != "" {
		return nil, usage(fmt.Errorf("%s takes URLs", command), urls)
	}
	w, err := endpoint.ParseAddresses(words)
	if err != nil {
		return nil, usage(err, example)
	}
	return w, nil
}

// secret returns the value of an environment variable. It returns "" if no name is given, and an
// error if the variable is unset or empty.
func secret(flag, variable string) (string, error) {
	if variable == "" {
		return "", nil
	}
	s := os.Getenv(variable)
	if s == "" {
		return "",
			usage(fmt.Errorf("--%s %s: there is no such environment variable, or it is empty", flag,
				variable), "export "+variable+"=…")
	}
	return s, nil
}

// locateServers returns a function that finds an endpoint's server, a docker-proxy in between, and
// what slows the server down. Facts that cannot be read stay unknown without an error, because
// endpoints may be anywhere.
func locateServers() endpoint.Locate {
	var once sync.Once
	var facts *ports.Facts
	return func(ctx context.Context, remote string, from *vantage.Vantage) endpoint.Server {
		dial, err := netip.ParseAddrPort(remote)
		if err != nil { // a Unix socket
			return endpoint.Server{}
		}
		once.Do(func() { facts, _ = collect.Published(ctx) })
		if facts == nil {
			facts = &ports.Facts{}
		}
		var s endpoint.Server
		if behind, ok := ports.Through(facts, dial); ok && from.PID() == 0 {
			s.Behind = behind.String()
			s.Ports = func() (used, all int) { return portsTowards(facts, behind) }
		}
		if c, ok := ports.ServerOf(facts, dial, from.PID()); ok {
			s.Container, s.PID = c.Name, c.PID
		} else if from.PID() == 0 {
			s.PID = ports.ProcessAt(facts, dial)
		}
		if s.PID == 0 && s.Behind == "" && os.Geteuid() == 0 {
			s.PID = collect.ServerAt(ctx, dial, from)
		}
		switch {
		case s.PID != 0:
			s.Strain = machine.Machine{}.StrainOf(s.PID).Own()
		case os.Geteuid() == 0:
			s.Unseen = "toll found no process on the client's machine that serves it"
		case from.PID() == 0 && ports.Listens(facts, dial):
			s.Unseen = "toll must be root to see its process"
		default:
			s.Unseen = "it is not on the client's machine, or toll must be root to see it"
		}
		if s.PID == 0 && from.PID() == 0 && ports.Listens(facts, dial) {
			s.Strain = machine.Machine{}.StrainOf(0).Queues()
		}
		return s
	}
}

// portsTowards returns the number of local ports used by connections to an address, and the number
// of all local ports. Both are 0 if they are unknown.
func portsTowards(f *ports.Facts, to netip.AddrPort) (used, all int) {
	low, high := int(f.Switches.ClientPorts[0]), int(f.Switches.ClientPorts[1])
	count := map[netip.AddrPort]int{to: 0}
	if high == 0 || sock.Towards(count) != nil {
		return 0, 0
	}
	return count[to], high - low + 1
}
