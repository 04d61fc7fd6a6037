package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
	"github.com/bridgetoll/bridgetoll/internal/measure/observe"
	"github.com/bridgetoll/bridgetoll/internal/measure/program"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// Program runs a foreign client over several routes to a server.
type Program struct {
	client  sample.Program
	names   []string
	routes  map[string]*route
	keepers map[*vantage.Vantage]*keeper
	facts   map[string]sample.Path
	servers servers
	meter   *meter.Meter
	ways    map[string]*observe.Way // of routes over which requests are followed; nil: of none
	// Locate finds the server; nil: it is unknown.
	Locate Locate
	// Progress, unless nil, is called with each route before its client first runs.
	Progress func(name string)
}

type route struct {
	host string // a name or an address
	port uint16
	only Families // of a name's addresses to use
	from *vantage.Vantage
	addr netip.Addr // the first one found
	udp  bool       // its requests, which are followed, are datagrams
}

// hostName matches names without characters that are special to a shell.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}$`)

// ParseRoutes parses [NAME=]HOST:PORT; URL is then HOST:PORT. With both families a name is two
// routes.
func ParseRoutes(words []string, f Families) ([]Address, error) {
	var out []Address
	seen := map[string]bool{}
	for _, w := range words {
		a := Address{Name: w, URL: w}
		if m := named.FindStringSubmatch(w); m != nil {
			a = Address{Name: m[1], URL: m[2]}
		}
		r, err := parseRoute(a.URL)
		if err != nil {
			return nil, fmt.Errorf("%.80q: %w", w, err)
		}
		all, err := f.split(a, r.host)
		if err != nil {
			return nil, err
		}
		for _, a := range all {
			if seen[a.Name] {
				return nil, fmt.Errorf("two routes are called %s: name them, as in direct=%s",
					a.Name, a.URL)
			}
			seen[a.Name] = true
			out = append(out, a)
		}
	}
	if len(out) > maxAddresses {
		return nil, fmt.Errorf("%d routes, at most %d can be compared", len(out), maxAddresses)
	}
	return out, nil
}

func parseRoute(s string) (*route, error) {
	if strings.Contains(s, "://") {
		return nil, errors.New("give HOST:PORT, not a URL")
	}
	host, word, err := net.SplitHostPort(s)
	if err != nil {
		end := max(0, strings.LastIndex(s, ":"))
		if _, notIP := netip.ParseAddr(s[:end]); notIP == nil {
			return nil, fmt.Errorf("an IPv6 address needs brackets: [%s]%s", s[:end], s[end:])
		}
		return nil, errors.New("must be HOST:PORT, with brackets around an IPv6 address")
	}
	port, err := strconv.ParseUint(word, 10, 16)
	if err != nil || port == 0 {
		return nil, fmt.Errorf("the port %q is not from 1 to 65535", word)
	}
	if a, err := netip.ParseAddr(host); err == nil && a.Zone() == "" {
		host = a.Unmap().String()
	} else if !hostName.MatchString(host) {
		return nil, fmt.Errorf("%q is neither a host name nor an address without a zone", host)
	}
	return &route{host: host, port: uint16(port)}, nil
}

func newProgram(at []Address, client sample.Program) (*Program, error) {
	m, err := meter.New()
	if err != nil {
		return nil, err
	}
	p := &Program{client: client, routes: map[string]*route{},
		keepers: map[*vantage.Vantage]*keeper{}, facts: map[string]sample.Path{},
		servers: servers{}, meter: m}
	for _, a := range at {
		r, err := parseRoute(a.URL)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.Name, err)
		}
		r.from, r.only = a.place(), a.Families
		p.names, p.routes[a.Name] = append(p.names, a.Name), r
	}
	return p, nil
}

// Names returns the routes' names in order.
func (p *Program) Names() []string { return p.names }

// Check runs the client once over each route, which also warms up the server.
func (p *Program) Check(ctx context.Context) error {
	for _, name := range p.names {
		if p.Progress != nil {
			p.Progress(name)
		}
		r := p.routes[name]
		began := time.Now()
		addrs, _, err := r.lookUp(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		r.addr = addrs[0]
		if err := r.refused(ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		facts := map[string]string{"url": net.JoinHostPort(r.host, strconv.Itoa(int(r.port)))}
		evidence, hops, err := p.try(ctx, name, r, facts)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if from := elsewhere(r.from); from != "" {
			facts["from"] = from
		}
		facts[familyFact] = family(r.dial().String())
		if !r.udp {
			p.servers.find(ctx, p.Locate, name, r.dial().String(), r.from, facts)
		}
		p.servers.handles(name, evidence, facts)
		is := sample.Path{Route: name, From: sample.FromHere, On: sample.OnEndpoint,
			Dial: r.dial().String(), Hops: hops,
			Built: time.Since(began).Seconds(), Facts: facts, Evidence: evidence}
		if way := p.ways[name]; way != nil {
			is.Frames, is.Steered = way.Frames, way.Steered
		}
		p.facts[name] = is
	}
	return nil
}

// Paths describes the routes after Check.
func (p *Program) Paths() []sample.Path { return paths(p.names, p.facts) }

// Visit runs the client over a route to its end.
func (p *Program) Visit(ctx context.Context, cell sample.Cell, _ sample.Load,
	v *sample.Visit) error {
	r := p.routes[cell.Route]
	if p.ways != nil {
		return p.follow(ctx, r, p.ways[cell.Route], v)
	}
	k, err := p.keeperAt(r.from)
	if err != nil {
		return err
	}
	together, before := p.servers.watch(k.process.PID, cell.Route),
		strainsOf(r.from, p.servers[cell.Route])
	err = p.run(ctx, r, v)
	v.Together = together()
	before.note(v)
	return err
}

func (p *Program) run(ctx context.Context, r *route, v *sample.Visit) error {
	addrs, took, err := r.lookUp(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(addrs, r.addr) {
		return fmt.Errorf("the address of %s changed from %s to %s", r.host, r.addr, addrs[0])
	}
	k, err := p.keeperAt(r.from)
	if err != nil {
		return err
	}
	v.Output = &sample.Output{}
	err = p.runIn(ctx, k, r, took, v)
	var told *program.Error
	if err != nil && !errors.As(err, &told) {
		p.dismiss(r.from)
	}
	return err
}

func (p *Program) runIn(ctx context.Context, k *keeper, r *route, lookUp time.Duration,
	v *sample.Visit) error {
	ended, err := program.Again(p.client, func() (program.State, error) {
		return p.once(ctx, k, r, v)
	}, func(pause time.Duration) error {
		select {
		case <-time.After(pause):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if err != nil {
		return err
	}
	if v.Values, err = ended.Values(p.client); err != nil {
		return fmt.Errorf("client: %w", err)
	}
	if ended.Known {
		v.Client.CPU = ended.CPU.Seconds()
	}
	v.Server = sample.Party{Window: v.Client.Window}
	if lookUp > 0 {
		v.Client.Counts[workload.CountLookUp] = lookUp.Nanoseconds()
	}
	return nil
}

// once runs the client to its end, and stops what it left running.
func (p *Program) once(ctx context.Context, k *keeper, r *route,
	v *sample.Visit) (program.State, error) {
	limit := seconds(p.client.Timeout)
	fill := program.Fill{Addr: r.dial(), Name: r.host, Seconds: p.client.Seconds}
	first, err := p.meter.Read()
	if err != nil {
		return program.State{}, err
	}
	ended, err := k.Do(ctx, program.Request{
		Op: program.Start, Command: fill.Into(p.client.Client), NoRoot: p.client.NoRoot,
		Limit: limit, Follow: r.dial()})
	if err == nil {
		ended, err = k.Do(ctx, program.Request{Op: program.Wait, Limit: limit})
	}
	last, readErr := p.meter.Read()
	v.Output.Client = ended.Kept(keptOutput)
	if err == nil && ended.Exit != "" {
		ended.Error = "it failed"
		err = &program.Error{State: ended}
	}
	var told *program.Error
	if err != nil && !errors.As(err, &told) {
		return ended, err
	}
	swept, stopErr := k.Do(ctx, program.Request{Op: program.Stop}) // whatever it left running
	v.Client = sample.Party{Window: ended.Elapsed.Seconds()}
	noteConnections(swept.Tally, v)
	if err := errors.Join(err, stopErr, readErr); err != nil {
		return ended, fmt.Errorf("client: %w", err)
	}
	v.Metered = sample.Metered{Machine: meter.Since(first, last),
		Elapsed: last.At.Sub(first.At).Seconds()}
	return ended, nil
}

// noteConnections records the client's connections; t is nil if the kernel does not count them.
func noteConnections(t *sock.Tally, v *sample.Visit) {
	v.Client.Counts = map[string]int64{}
	if t == nil {
		return
	}
	v.Client.Connections, v.Client.Sent, v.Client.Received = t.Connections, t.Sent, t.Received
	v.Client.TCP = sample.TCPInfo{RTT: (time.Duration(t.RTT) * time.Microsecond).Seconds(),
		Retransmits: t.Resent}
	v.Client.Counts[workload.CountConnections] = int64(t.Connections)
	v.Client.Counts[workload.CountResent], v.Client.Counts[workload.CountOutOfOrder] = t.Resent,
		t.OutOfOrder
	v.Client.Counts[workload.CountSegments] = t.Segments
	v.Client.Counts[workload.CountRefused] = int64(t.Refused)
	v.Client.Counts[workload.CountNoPort] = int64(t.NoPort)
	if t.Range > 0 {
		v.Client.Counts[workload.CountPortsUsed] = int64(t.Ports)
		v.Client.Counts[workload.CountPortRange] = int64(t.Range)
	}
}

// Close ends the keepers and all their programs.
func (p *Program) Close() error {
	for v := range p.keepers {
		p.dismiss(v)
	}
	return forget(p.ways)
}

const keptOutput = 4 << 10

type keeper struct {
	*program.Control
	process *path.Process
}

func (p *Program) keeperAt(v *vantage.Vantage) (*keeper, error) {
	if k := p.keepers[v]; k != nil {
		return k, nil
	}
	process, err := v.Start(path.Command{Args: []string{program.Arg}, Apart: true})
	if err != nil {
		return nil, err
	}
	p.keepers[v] = &keeper{program.NewControl(process.In, process.Out), process}
	return p.keepers[v], nil
}

// dismiss kills the keeper in a place, and with its PID namespace everything left there.
func (p *Program) dismiss(v *vantage.Vantage) {
	k := p.keepers[v]
	delete(p.keepers, v) // the next visit has a new one
	_ = k.process.Kill()
	_ = k.Close()
	_ = k.process.Wait() // it was killed
}

func (r *route) dial() netip.AddrPort { return netip.AddrPortFrom(r.addr, r.port) }

type refusedError struct {
	at   netip.AddrPort
	from string // the place; "": this machine
}

func (e *refusedError) Error() string {
	if e.from != "" {
		return fmt.Sprintf("nothing listens at %s: connection from %s refused", e.at,
			e.from)
	}
	return fmt.Sprintf("nothing listens at %s: connection refused", e.at)
}

func (e *refusedError) Hint() string { return vantage.StartFirst }

// refused returns a *refusedError if connections are refused over TCP and UDP, or if requests are
// datagrams over UDP, because some clients would retry for long. An address that does not answer
// may still serve them.
func (r *route) refused(ctx context.Context) error {
	const patience = time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if !r.udp {
		c, _, err := r.from.Dial(ctx, "tcp", r.dial().String())
		if err == nil {
			return c.Close()
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil // the client will report what it is
		}
	}
	c, _, err := r.from.Dial(ctx, "udp", r.dial().String())
	if err != nil {
		return nil
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err = c.Write(nil); err == nil { // an empty datagram
		_, err = c.Read(make([]byte, 1))
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return &refusedError{r.dial(), elsewhere(r.from)}
	}
	return nil
}

func (r *route) lookUp(ctx context.Context) ([]netip.Addr, time.Duration, error) {
	addrs, took, err := r.only.lookUp(ctx, r.from, r.host)
	return addrs, took.LookUp, err
}
