// Package endpoint visits external endpoints: a language model's server (chat), a database (sql) or
// any server of a foreign client program (exec), each reached by one or several routes. A route is
// a name and an address. Each visit opens connections of its own.
//
// Visits are not witnessed (sample.Plan.Counts), because toll controls nothing on the routes.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

const maxAddresses = 32

var named = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9_.-]{0,39})=(.*)$`)

// Address is an endpoint's address on the command line.
type Address struct {
	Name, URL string
	From      *vantage.Vantage `json:"-"` // where its connections start; nil: this machine
	Families  Families         // of a name's addresses to use
}

// From returns each address once for each place in which its connections start. The place's name is
// added to the address's, except for this machine.
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

func (a Address) place() *vantage.Vantage {
	if a.From == nil {
		return vantage.Local()
	}
	return a.From
}

func elsewhere(v *vantage.Vantage) string {
	if v.Name() == vantage.Here {
		return ""
	}
	return v.Name()
}

// Server is the server's end of a route, on this machine.
type Server struct {
	Container string // its name; "": none, or unknown
	PID       int    // of its first process; 0: unknown
	// Behind is the container's address behind a docker-proxy; "": none, or unknown.
	Behind string
	// Unseen is a clause on why the server's process was not found; "": it was, or nobody looked.
	Unseen string
	// Strain reads what slows the server down, by the names of visits' counts; nil: unknown.
	Strain func() map[string]int64
	// Ports reads how many local ports docker-proxy's connections to the server use, and how many
	// there are, 0 if unknown. Nil if no docker-proxy is on the route.
	Ports func() (used, all int)
}

// Locate finds what serves at an address.
type Locate func(ctx context.Context, remote string, from *vantage.Vantage) Server

type servers map[string]Server

func (s servers) find(ctx context.Context, locate Locate, name, remote string,
	from *vantage.Vantage, facts map[string]string) {
	if locate == nil {
		return
	}
	s[name] = locate(ctx, remote, from)
	noteDevices(remote, from, s[name], facts)
	for fact, value := range map[string]string{"container": s[name].Container,
		"behind_docker_proxy": s[name].Behind, sample.FactServerUnseen: s[name].Unseen} {
		if value != "" {
			facts[fact] = value
		}
	}
}

// watch samples whether a client and a route's server run on one CPU until stop, which returns the
// share of samples in which they did, or nil if unknown.
func (s servers) watch(client int, name string) (stop func() *float64) {
	m, err := meter.New()
	if server := s[name].PID; err == nil && server != 0 && client != 0 {
		return m.Together(meter.Pair{Client: client, Server: server})
	}
	return func() *float64 { return nil }
}

// ParseAddresses parses NAME=URL or URL, whose name is then its host and port. Names must differ.
// Errors do not quote the words, because they may contain secrets.
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
		} else if err == nil && strings.Contains(w, ":///") && !socketURL.MatchString(w) {
			a.Name = u.Scheme // of no server, such as sqlite:///FILE, which is refused by that
		}
		switch {
		case a.URL == "":
			return nil, fmt.Errorf("endpoint %d has no address", i+1)
		case atBehindHost(a.URL):
			return nil,
				fmt.Errorf(
					"endpoint %d has an @ after its host: write %%40 there, and no password at all",
					i+1)
		case wrongAuthority(a.URL) != "":
			return nil, fmt.Errorf("endpoint %d has %s", i+1, wrongAuthority(a.URL))
		case a.Name == "" && socketURL.MatchString(a.URL):
			return nil, fmt.Errorf("endpoint %d has no host to be called by: name it, as in db=URL", i+1)
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

// socketURL matches the beginning of a URL without a host, whose server listens at a Unix socket.
var socketURL = regexp.MustCompile(`^(postgres|postgresql|mysql|sqlserver|http|https):///`)

// atBehindHost reports whether a URL has an @ in its path or query. The @ most likely ends a
// password with a / ? or # in it, whose beginning would be taken for a port, and printed.
func atBehindHost(address string) bool {
	_, rest, _ := strings.Cut(address, "//")
	end := strings.IndexAny(rest, "/?#")
	return end >= 0 && strings.Contains(rest[end:], "@")
}

var (
	bareIPv6 = regexp.MustCompile(`^[0-9a-fA-F]*(:[0-9a-fA-F]*){2,}[0-9a-fA-F.]*$`)
	endPort  = regexp.MustCompile(`:([0-9]+)$`)
)

// wrongAuthority returns what is wrong with the host or the port of a URL, or "". It quotes nothing
// of the URL.
func wrongAuthority(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	rest = rest[strings.LastIndex(rest, "@")+1:]
	if bareIPv6.MatchString(rest) {
		return "an IPv6 address without brackets: write [::1]:8080"
	}
	if m := endPort.FindStringSubmatch(rest); m != nil {
		if n, err := strconv.ParseUint(m[1], 10, 16); err != nil || n == 0 {
			return "a port that is not from 1 to 65535"
		}
	}
	return ""
}

// atOnce calls f for 0 to n-1 concurrently. It returns the first failure, which cancels the others.
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

var errOther = errors.New("another session failed")

type suspects struct {
	lookUps                  []float64 // seconds, for names
	sent, resent, outOfOrder int64     // segments
}

// strains reads what has slowed a client and its server down since strainsOf.
type strains struct {
	client, server             func() map[string]int64 // nil: unknown
	clientBefore, serverBefore map[string]int64
	ports                      func() (used, all int)
}

func strainsOf(from *vantage.Vantage, server Server) strains {
	s := strains{client: machine.Machine{}.StrainOf(from.PID()).Read, server: server.Strain,
		ports: server.Ports}
	s.clientBefore = s.client()
	if s.server != nil {
		s.serverBefore = s.server()
	}
	return s
}

// note records the counts in v. It leaves out those that the client's own connections have recorded
// already, more precisely than its network namespace.
func (s strains) note(v *sample.Visit) {
	if v.Client.Counts == nil {
		v.Client.Counts = map[string]int64{}
	}
	now := machine.Since(s.clientBefore, s.client())
	for _, name := range []string{workload.CountStops, workload.CountPeriods,
		workload.CountMemoryHits, workload.CountDelayedACKs, workload.CountSynResent} {
		if n, ok := now[name]; ok {
			v.Client.Counts[name] = n
		}
	}
	if s.server != nil {
		v.Server.Counts = machine.Since(s.serverBefore, s.server())
	}
	if s.ports == nil {
		return
	}
	if v.Server.Counts == nil {
		v.Server.Counts = map[string]int64{}
	}
	if used, all := s.ports(); all > 0 {
		v.Server.Counts[workload.CountPortsUsed] = int64(used)
		v.Server.Counts[workload.CountPortRange] = int64(all)
	}
}

func (s suspects) note(v *sample.Visit) {
	if len(s.lookUps) > 0 {
		v.Values[workload.ValueLookUp] = median(s.lookUps)
	}
	if v.Client.Counts == nil {
		v.Client.Counts = map[string]int64{}
	}
	for name, n := range map[string]int64{workload.CountSegments: s.sent,
		workload.CountResent: s.resent, workload.CountOutOfOrder: s.outOfOrder} {
		v.Client.Counts[name] = n
	}
	v.Client.TCP.Retransmits = s.resent
}

func paths(names []string, facts map[string]sample.Path) []sample.Path {
	out := make([]sample.Path, len(names))
	for i, w := range names {
		out[i] = facts[w]
	}
	return out
}
