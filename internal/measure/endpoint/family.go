package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
)

// Families are the address families of connections. The zero value allows any; a foreign client
// then uses IPv4 first.
type Families struct{ Four, Six bool }

type familyError struct{ host, family string }

func (e *familyError) Error() string { return e.host + " has no " + e.family + " address" }

func (e *familyError) Hint() string { return "leave -4 and -6 out, or give an address" }

// of returns the addresses of the families, IPv4 first.
func (f Families) of(all []netip.Addr) (out []netip.Addr) {
	for _, four := range []bool{true, false} {
		for _, a := range all {
			asked := f.Four && four || f.Six && !four || f == Families{}
			if a.Is4() == four && asked {
				out = append(out, a)
			}
		}
	}
	return out
}

func (f Families) lookUp(ctx context.Context, from *vantage.Vantage,
	host string) ([]netip.Addr, vantage.Took, error) {
	all, took, err := from.LookUp(ctx, host)
	if err != nil {
		return nil, vantage.Took{LookUp: took}, err
	}
	if addrs := f.of(all); len(addrs) > 0 {
		return addrs, vantage.Took{LookUp: took}, nil
	}
	family := "IPv4"
	if f.Six {
		family = "IPv6"
	}
	return nil, vantage.Took{LookUp: took}, &familyError{host, family}
}

// split returns the address, limited to the families. If both are requested and host is a name, it
// returns one address for each.
func (f Families) split(a Address, host string) ([]Address, error) {
	addr, err := netip.ParseAddr(host)
	switch literal := err == nil; {
	case literal && f.Four != f.Six && addr.Unmap().Is4() != f.Four:
		return nil, fmt.Errorf("%s is not of the address family that -4 or -6 asks for", host)
	case !literal && f.Four && f.Six:
		four, six := a, a
		four.Name, four.Families = a.Name+"-ipv4", Families{Four: true}
		six.Name, six.Families = a.Name+"-ipv6", Families{Six: true}
		return []Address{four, six}, nil
	case !literal:
		a.Families = f
	}
	return []Address{a}, nil
}

// ByFamily returns the addresses, whose URLs have one host, limited to the families. If both are
// requested, an address whose host is a name becomes two.
func ByFamily(at []Address, f Families) ([]Address, error) {
	if f == (Families{}) {
		return at, nil
	}
	var out []Address
	seen := map[string]bool{}
	for _, a := range at {
		u, err := url.Parse(a.URL)
		if err != nil || u.Host == "" { // a socket's path, or refused elsewhere
			return nil, fmt.Errorf("%s: an address family needs a URL with one host", a.Name)
		}
		all, err := f.split(a, u.Hostname())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.Name, err)
		}
		for _, a := range all {
			if seen[a.Name] {
				return nil, fmt.Errorf("two endpoints are called %s", a.Name)
			}
			seen[a.Name] = true
			out = append(out, a)
		}
	}
	if len(out) > maxAddresses {
		return nil, fmt.Errorf("%d endpoints, at most %d can be compared", len(out), maxAddresses)
	}
	return out, nil
}

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, vantage.Took, error)

type lookUpFunc func(ctx context.Context, host string) ([]netip.Addr, time.Duration, error)

// lookUps returns a function that looks names up in the address's place, in its families.
func (a Address) lookUps() lookUpFunc {
	from, only := a.place(), a.Families
	if only == (Families{}) {
		return from.LookUp
	}
	return func(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
		addrs, took, err := only.lookUp(ctx, from, host)
		return addrs, took.LookUp, err
	}
}

func (a Address) dialler() dialFunc {
	from, only := a.place(), a.Families
	if only == (Families{}) {
		return from.Dial
	}
	return func(ctx context.Context, network, addr string) (net.Conn, vantage.Took, error) {
		host, port, err := net.SplitHostPort(addr)
		if network == "unix" || err != nil {
			return nil, vantage.Took{}, fmt.Errorf("%s has no address family", addr)
		}
		addrs, looked, err := only.lookUp(ctx, from, host)
		if err != nil {
			return nil, looked, err
		}
		var failed []error
		for _, x := range addrs {
			c, took, err := from.Dial(ctx, network, net.JoinHostPort(x.String(), port))
			if took.LookUp, took.First = looked.LookUp, addrs[0]; err == nil {
				return c, took, nil
			}
			failed = append(failed, err)
		}
		return nil, looked, errors.Join(failed...)
	}
}

// familyFact is a name in reports.
const familyFact = "address family"

func family(dial string) string {
	at, err := netip.ParseAddrPort(dial)
	switch {
	case err != nil:
		return ""
	case at.Addr().Unmap().Is4():
		return "IPv4"
	}
	return "IPv6"
}
