package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/measure/endpoint"
	"github.com/bridgetoll/bridgetoll/internal/measure/observe"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/view"
)

const attachFlag = "attach"

// attachFlags lists the flags of toll trace that apply to --attach.
var attachFlags = []string{attachFlag, "budget", "dry-run", formatName, outputFlag, "force", "quiet"}

// attachTo watches the requests to a server that runs already.
func (f *runFlags) attachTo(ctx context.Context, e env, fl *pflag.FlagSet, to string,
	modes []string) error {
	usual := remedy.AsRoot("toll trace --attach 5432 --budget 10s")
	if len(modes) > 0 {
		return usage(fmt.Errorf("--attach watches a server that runs already: no mode goes with it"),
			usual)
	}
	if err := noOthers(fl, attachFlags, "--"+attachFlag, usual); err != nil {
		return err
	}
	f.out.format.kind = document.Requests
	if err := f.out.check(); err != nil {
		return err
	}
	at, over, err := attachedTo(to, usual)
	if err != nil {
		return err
	}
	if f.dryRun {
		shown := at.String()
		if over == overUDP {
			shown += "/udp"
		}
		fmt.Fprintf(e.stdout, "watch the requests to %s for %s\n", shown, f.budget)
		return nil
	}
	began := time.Now()
	s, err := watched(ctx, at, over, f.budget)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return &failure{exitFailed, fmt.Errorf("attach to %s: %w", at, err),
			remedy.AsRoot("toll trace --attach " + to)}
	case errors.Is(err, observe.ErrUnseen):
		return &failure{exitFailed, fmt.Errorf("attach to %s: no process of this machine receives its "+
			"requests", at), "run toll where the server runs"}
	case errors.Is(err, unix.ECONNREFUSED):
		return &failure{exitNothing, fmt.Errorf("attach to %s: %w", at, err), vantage.StartFirst}
	case err != nil:
		return &failure{exitFailed, fmt.Errorf("attach to %s: %w", at, err),
			"toll ports shows who listens where"}
	}
	tryFrames(ctx, s.Frames)
	s.Schema, s.Started, s.Command = sample.ServedSchema, began, withoutOutput(e)
	s.Environment, _ = (machine.Machine{}).Read() // what cannot be read is left empty
	s.Environment.Tool = version
	kept := keepServed(e, s)
	unprinted := f.out.print(e, view.Served(s))
	if kept > 0 && (!f.quiet || unprinted != nil) {
		say(e.stderr, fmt.Sprintf("toll: kept as @%[1]d: toll report @%[1]d", kept))
	}
	return unprinted
}

// The protocols over which requests are watched; "": TCP, or UDP where nothing accepts that.
const overTCP, overUDP = "tcp", "udp"

// attachedTo parses PORT or ADDRESS:PORT, either with a protocol as in 53/udp. A port is that of
// 127.0.0.1.
func attachedTo(word, usual string) (at netip.AddrPort, over string, err error) {
	if socket := (endpoint.UnixSocketError{}); endpoint.OnUnixSocket(word) {
		return at, "", usage(socket, socket.Hint())
	}
	if _, scheme, host, port := addressIn(word); scheme != "" && port != "" {
		to := net.JoinHostPort(host, port)
		if _, err := netip.ParseAddr(host); err != nil {
			to = port
		}
		return at, "", usage(errors.New("--attach takes PORT or ADDRESS:PORT, not a URL"),
			remedy.AsRoot(sample.CommandLine([]string{"trace", "--attach", to})))
	}
	word, over, given := strings.Cut(word, "/")
	if given && over != overTCP && over != overUDP {
		return at, over, usage(fmt.Errorf("--attach cannot follow requests over %.20q, only over tcp "+
			"and udp", over), usual)
	}
	if at, err := netip.ParseAddrPort(word); err == nil && at.Port() != 0 {
		return at, over, nil
	}
	if strings.Contains(strings.TrimPrefix(word, ":"), ":") {
		return at, over, usage(fmt.Errorf("%.60q is neither PORT nor ADDRESS:PORT", word), usual)
	}
	port, err := parsePort(word, usual)
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port), over, err
}

// watched watches the requests to a server.
func watched(ctx context.Context, at netip.AddrPort, over string,
	during time.Duration) (s *sample.Served, err error) {
	if over != overUDP {
		s, err = observe.Attach(ctx, func() (uint16, error) {
			c, _, err := vantage.Local().Dial(ctx, "tcp", at.String())
			if err != nil {
				return 0, err
			}
			return c.LocalAddr().(*net.TCPAddr).AddrPort().Port(), c.Close()
		}, during)
	}
	if over == overTCP || over == "" && !errors.Is(err, unix.ECONNREFUSED) {
		return s, err
	}
	s, errUDP := observe.AttachUDP(ctx, func() (net.Conn, error) {
		c, _, err := vantage.Local().Dial(ctx, "udp", at.String())
		return c, err
	}, during)
	if over == "" && errors.Is(errUDP, unix.ECONNREFUSED) {
		return nil, err // TCP's
	}
	return s, errUDP
}
