package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/measure/observe"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/view"
)

const attachFlag = "attach"

// attachFlags lists the flags of toll trace that apply to --attach.
var attachFlags = []string{attachFlag, "budget", "dry-run", formatName, outputFlag, "force", "quiet"}

// attachTo watches the requests to a server that runs already.
func (f *runFlags) attachTo(ctx context.Context, e env, fl *pflag.FlagSet, to string,
	modes []string) error {
	usual := "sudo toll trace --attach 5432 --budget 10s"
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
	at, err := attachedTo(to, usual)
	if err != nil {
		return err
	}
	if f.dryRun {
		fmt.Fprintf(e.stdout, "watch the requests to %s for %s\n", at, f.budget)
		return nil
	}
	s, err := observe.Attach(ctx, func() (uint16, error) {
		c, _, err := vantage.Local().Dial(ctx, "tcp", at.String())
		if err != nil {
			return 0, err
		}
		return c.LocalAddr().(*net.TCPAddr).AddrPort().Port(), c.Close()
	}, f.budget)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return &failure{exitFailed, fmt.Errorf("attach to %s: %w", at, err), "sudo toll trace --attach " + to}
	case errors.Is(err, observe.ErrUnseen):
		return &failure{exitFailed, fmt.Errorf("attach to %s: no process of this machine accepts its "+
			"connections", at), "run toll where the server runs"}
	case err != nil:
		return &failure{exitFailed, fmt.Errorf("attach to %s: %w", at, err),
			"toll ports shows who listens where"}
	}
	return f.out.print(e, view.Served(s))
}

// attachedTo parses PORT or ADDRESS:PORT, either with /tcp. A port is that of 127.0.0.1.
func attachedTo(word, usual string) (netip.AddrPort, error) {
	word, proto, given := strings.Cut(word, "/")
	if given && proto != "tcp" {
		return netip.AddrPort{}, usage(fmt.Errorf("--attach cannot follow requests over %.20q, only "+
			"over TCP", proto), usual)
	}
	if at, err := netip.ParseAddrPort(word); err == nil && at.Port() != 0 {
		return at, nil
	}
	if strings.Contains(strings.TrimPrefix(word, ":"), ":") {
		return netip.AddrPort{}, usage(fmt.Errorf("%.60q is neither PORT nor ADDRESS:PORT", word), usual)
	}
	port, err := parsePort(word, usual)
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port), err
}
