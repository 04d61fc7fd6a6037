package endpoint

import (
	"cmp"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// noteDevices adds the network devices of a route to facts, with the offloads that are off: the
// client's and, if the server's namespace is another one of this machine, the server's. It leaves
// out what it cannot read.
func noteDevices(remote string, from *vantage.Vantage, server Server, facts map[string]string) {
	dial, err := netip.ParseAddrPort(remote)
	if err != nil {
		return
	}
	var source netip.Addr
	note := func(to netip.Addr, device, off string) func() error {
		return func() error {
			r, err := link.RouteTo(to)
			if err != nil {
				return err
			}
			source = r.Source
			info, err := link.Describe(r.Device)
			if err != nil {
				return err
			}
			facts[device] = r.Device
			if names := offOf(info.Offloads); len(names) > 0 {
				facts[off] = strings.Join(names, ", ")
			}
			return nil
		}
	}
	read := note(dial.Addr().Unmap(), sample.FactDevice, sample.FactOffloadsOff)
	if from.PID() != 0 {
		err = netns.Visit(from.PID(), read)
	} else {
		err = read()
	}
	if err != nil || server.PID == 0 || !source.IsValid() {
		return
	}
	its, errServer := netns.ID(server.PID)
	client := cmp.Or(from.PID(), os.Getpid())
	own, errOwn := netns.ID(client)
	if errServer == nil && errOwn == nil && its != own {
		// without privilege, the server's devices stay unknown
		_ = netns.Visit(server.PID, note(source, sample.FactServerDevice,
			sample.FactServerOffloadsOff))
	}
}

func offOf(offloads map[string]bool) (out []string) {
	for name, on := range offloads {
		if !on {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
