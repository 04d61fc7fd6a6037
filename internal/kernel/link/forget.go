package link

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
)

// Forget removes what packets have left in the calling thread's namespace: neighbours that the
// kernel has found, addresses that bridges have learned, and exceptions from routes, which come
// from redirects and from smaller MTUs on the way.
func Forget() error {
	return errors.Join(forgetNeighbours(), forgetLearned(), forgetExceptions())
}

func forgetNeighbours() error {
	found, err := rawList("neighbours", unix.RTM_GETNEIGH, unix.RTM_DELNEIGH, bothFamilies,
		unix.SizeofNdMsg, func(b []byte) bool {
			return neighbourOf(b).state&(unix.NUD_PERMANENT|unix.NUD_NOARP) == 0
		})
	if err != nil {
		return err
	}
	return sendEach(found, unix.ENOENT, func(c sender, m raw.Message) error {
		list, err := only(m.Data, unix.SizeofNdMsg, unix.NDA_DST)
		if err != nil {
			return err
		}
		n := neighbourOf(m.Data)
		n.flags &= unix.NTF_PROXY
		return c.send(m.Type, 0, append(n.header(), marshal(list...)...))
	})
}

// sendEach calls send for each of what was found, if there is any. gone is its error for what has
// ended meanwhile.
func sendEach[T any](found []T, gone error, send func(sender, T) error) error {
	if len(found) == 0 {
		return nil
	}
	c, err := openSender()
	if err != nil {
		return err
	}
	for _, x := range found {
		if wrong := send(c, x); wrong != nil && !errors.Is(wrong, gone) {
			err = errors.Join(err, wrong)
		}
	}
	return errors.Join(err, c.Close())
}

// forgetLearned removes the addresses that bridges have learned.
func forgetLearned() error {
	all, err := rawDump(unix.RTM_GETLINK, linkRequest(unix.AF_UNSPEC, skipCounts))
	if err != nil {
		return fmt.Errorf("list links: %w", err)
	}
	flush := marshal(nested(unix.IFLA_LINKINFO,
		netlink.Attribute{Type: unix.IFLA_INFO_KIND, Data: nl.ZeroTerminated("bridge")},
		nested(unix.IFLA_INFO_DATA, netlink.Attribute{Type: nl.IFLA_BR_FDB_FLUSH})))
	return sendEach(all, unix.ENODEV, func(c sender, b []byte) error {
		s, wrong := parseLink(b)
		if wrong == nil && s.Kind == "bridge" {
			wrong = c.send(unix.RTM_NEWLINK, 0, append(linkHeader(s.Index, 0, 0), flush...))
		}
		if wrong != nil {
			return fmt.Errorf("flush addresses of bridge %s: %w", s.Name, wrong)
		}
		return nil
	})
}

// forgetExceptions removes exceptions from routes. Those of IPv6 are removed one by one, because a
// flush leaves those that have a lifetime, such as smaller MTUs.
func forgetExceptions() error {
	const flush = "/proc/sys/net/ipv4/route/flush"
	if err := os.WriteFile(flush, []byte("1"), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("flush exceptions from routes: %w", err)
	}
	found, err := rawList("routes", unix.RTM_GETROUTE, unix.RTM_DELROUTE, []byte{unix.AF_INET6},
		unix.SizeofRtMsg, func(b []byte) bool {
			return nl.DeserializeRtMsg(b).Flags&unix.RTM_F_CLONED != 0
		})
	if err != nil {
		return err
	}
	return sendEach(found, unix.ESRCH, func(c sender, m raw.Message) error {
		if err := c.send(m.Type, 0, m.Data); err != nil {
			return fmt.Errorf("remove an exception from a route: %w", err)
		}
		return nil
	})
}
