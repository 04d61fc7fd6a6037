package endpoint

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/measure/observe"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// errNoTCP means that nothing takes TCP connections at an address: do tells what it is.
var errNoTCP = errors.New("no TCP connection")

// exchanges calls do, which makes requests to a remote address from a place, and divides their times
// by captured packets. It returns do's error. If they cannot be followed it sets the fact why.
func exchanges(ctx context.Context, from *vantage.Vantage, remote string, facts map[string]string,
	do func() error) (*sample.Evidence, error) {
	if _, err := netip.ParseAddrPort(remote); err != nil { // a Unix socket
		return nil, do()
	}
	e, unseen, err := observe.Exchanges(ctx, from.PID(), func() (uint16, error) {
		local, err := empty(ctx, from, remote)
		if local == 0 {
			err = errors.Join(errNoTCP, err)
		}
		return local, err
	}, do)
	if unseen != nil && !errors.Is(unseen, errNoTCP) {
		facts[sample.FactExchangesUnseen] = whyUnseen(unseen)
	}
	return e, err
}

// empty opens and closes a connection that carries nothing. It returns its local port, or 0 if
// there is none.
func empty(ctx context.Context, from *vantage.Vantage, remote string) (local uint16, err error) {
	const relayed = 50 * time.Millisecond // until a relay has dialled its server
	c, _, err := from.Dial(ctx, "tcp", remote)
	if err != nil {
		return 0, err
	}
	time.Sleep(relayed)
	local = c.LocalAddr().(*net.TCPAddr).AddrPort().Port()
	return local, c.Close()
}

// handles notes the process that packets showed to handle a route's requests, if the server's is not
// known.
func (s servers) handles(name string, e *sample.Evidence, facts map[string]string) {
	server := s[name]
	if e == nil || len(e.Hops) == 0 || e.Hops[0].PID == 0 || server.PID != 0 {
		return
	}
	if _, ok := e.Clear(); !ok {
		return
	}
	server.PID, server.Unseen = e.Hops[0].PID, ""
	server.Strain = machine.Machine{}.StrainOf(server.PID).Own()
	s[name] = server
	delete(facts, sample.FactServerUnseen)
}

// whyUnseen returns a clause on why packets could not be followed.
func whyUnseen(err error) string {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return "toll must be root to capture packets"
	}
	return err.Error()
}
