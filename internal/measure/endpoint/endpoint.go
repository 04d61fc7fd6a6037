// Package endpoint visits external endpoints: a language model's server (chat), a database (sql) or
// any server that a foreign client knows (exec), each reached by one or several routes. A route is
// a name and an address; the same server's published port, container address and host address are
// three. Each visit opens connections of its own, so that no visit inherits another's.
//
// Visits have no hops and are not witnessed (sample.Plan.Counts): toll controls nothing on the
// routes.
//
// All kinds fit engine.Endpoints: Check finds out once whether each route answers, Paths describes
// them, Visit measures.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// maxAddresses bounds the number of endpoints.
const maxAddresses = 32

var named = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9_.-]{0,39})=(.*)$`)

// Address is an endpoint's address on the command line.
type Address struct {
	Name, URL string
	From      *vantage.Vantage `json:"-"` // where its connections are made; nil: this machine
	Families  Families         // of a name's addresses to use
}

// From returns the addresses from each of the places, named after both except for this machine.
func From(at []Address, places []*vantage.Vantage) []Address {
	var out []Address
	for _, p := range places {
		for _, a := range at {
			a.From = p
			if p.Name() != vantage.Here {
				a.Name += "@" + p.Name()
			}
			out = append(out, a)
		}
	}
	return out
}

// place returns where the address's connections are made.
func (a Address) place() *vantage.Vantage {
	if a.From == nil {
		return vantage.Local()
	}
	return a.From
}

// elsewhere returns the name of a place that is not this machine, or "" for this one.
func elsewhere(v *vantage.Vantage) string {
	if v.Name() == vantage.Here {
		return ""
	}
	return v.Name()
}

// Server is the server's end of a route, on this machine.
type Server struct {
	Container string // its name; "": none, or it is not known
	PID       int    // of its first process; 0: not known
	// Behind is the container's address, if the route leads to it through a docker-proxy; "": it
	// leads through none, or that is not known.
	Behind string
	// Strain reads what slows it down, by the names of visits' counts; nil: not known.
	Strain func() map[string]int64
}

// Locate finds what serves at an address.
type Locate func(ctx context.Context, remote string, from *vantage.Vantage) Server

// servers are those at the ends of routes, by the routes' names.
type servers map[string]Server

// find records the server of a route, and names its container in the route's facts.
func (s servers) find(ctx context.Context, locate Locate, name, remote string,
	from *vantage.Vantage, facts map[string]string) {
	if locate == nil {
		return
	}
	s[name] = locate(ctx, remote, from)
	for fact, value := range map[string]string{"container": s[name].Container,
		"behind_docker_proxy": s[name].Behind} {
		if value != "" {
			facts[fact] = value
		}
	}
}

// watch samples whether a client's process and a route's server run on one CPU, until the returned
// function is called, which returns nil if that is unknown.
func (s servers) watch(client int, name string) (stop func() *float64) {
	m, err := meter.New()
	if server := s[name].PID; err == nil && server != 0 && client != 0 {
		return m.Together(meter.Pair{Client: client, Server: server})
	}
	return func() *float64 { return nil }
}

// ParseAddresses parses NAME=URL or URL, whose name is then its host and port. Names must differ.
// Errors say which word is wrong and do not quote it: an address may hold a secret.
func ParseAddresses(words []string) ([]Address, error) {
	if len(words) > maxAddresses {
		return nil, fmt.Errorf("%d endpoints, at most %d can be compared", len(words), maxAddresses)
	}
	var out []Address
	seen := map[string]bool{}
	for i, w := range words {
		a := Address{URL: w}
		if m := named.FindStringSubmatch(w); m != nil {
			a = Address{Name: m[1], URL: m[2]}
		} else if u, err := url.Parse(w); err == nil && u.Host != "" {
			a.Name = u.Host
		}
		switch {
		case a.URL == "":
			return nil, fmt.Errorf("endpoint %d has no address", i+1)
		case atBehindHost(a.URL):
			return nil,
				fmt.Errorf(
					"endpoint %d has an @ after its host: write %%40 there, and no password at all",
					i+1)
		case a.Name == "":
			return nil, fmt.Errorf("endpoint %d is neither NAME=URL nor a URL with a host", i+1)
		case seen[a.Name]:
			return nil, fmt.Errorf("two endpoints are called %s: name them, as in published=%s",
				a.Name, "URL")
		}
		seen[a.Name] = true
		out = append(out, a)
	}
	return out, nil
}

// atBehindHost reports whether an address has an @ in a URL's path or query. Most likely it ends a
// password with a / ? or # in it; the part before that would be taken for a port, and printed.
func atBehindHost(address string) bool {
	_, rest, _ := strings.Cut(address, "//")
	end := strings.IndexAny(rest, "/?#")
	return end >= 0 && strings.Contains(rest[end:], "@")
}

// atOnce calls f for each of n sessions at once; if one fails the others are stopped, and the first
// failure is returned.
func atOnce(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			if errs[i] = f(ctx, i); errs[i] != nil {
				cancel(errOther)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, errOther) {
			return err
		}
	}
	return nil
}

// errOther is why a session stops after another one failed.
var errOther = errors.New("another session failed")

// suspects are other reasons for an endpoint's slowness, as a visit saw them.
type suspects struct {
	lookUps            []float64 // seconds, for names
	resent, outOfOrder int64     // segments
}

// strains are what slows down both ends of a route, as it was when a visit began.
type strains struct {
	client, server             func() map[string]int64 // nil: not known
	clientBefore, serverBefore map[string]int64
}

// strainsOf reads what slows down a client in that place, and the server.
func strainsOf(from *vantage.Vantage, server Server) strains {
	s := strains{client: machine.Machine{}.StrainOf(from.PID()).Read, server: server.Strain}
	s.clientBefore = s.client()
	if s.server != nil {
		s.serverBefore = s.server()
	}
	return s
}

// note puts what came since into the visit. What the client's own connections counted is in it
// already, and closer than what its whole network namespace did.
func (s strains) note(v *sample.Visit) {
	if v.Client.Counts == nil {
		v.Client.Counts = map[string]int64{}
	}
	now := machine.Since(s.clientBefore, s.client())
	for _, name := range []string{workload.CountStops, workload.CountPeriods,
		workload.CountMemoryHits, workload.CountDelayedACKs} {
		if n, ok := now[name]; ok {
			v.Client.Counts[name] = n
		}
	}
	if s.server != nil {
		v.Server.Counts = machine.Since(s.serverBefore, s.server())
	}
}

// note puts what the connections counted into the visit.
func (s suspects) note(v *sample.Visit) {
	if len(s.lookUps) > 0 {
		v.Values[workload.ValueLookUp] = median(s.lookUps)
	}
	if v.Client.Counts == nil {
		v.Client.Counts = map[string]int64{}
	}
	v.Client.Counts[workload.CountResent], v.Client.Counts[workload.CountOutOfOrder] = s.resent,
		s.outOfOrder
	v.Client.TCP.Retransmits = s.resent
}

// paths describes endpoints by what was found at each.
func paths(names []string, facts map[string]sample.Path) []sample.Path {
	out := make([]sample.Path, len(names))
	for i, w := range names {
		out[i] = facts[w]
	}
	return out
}
