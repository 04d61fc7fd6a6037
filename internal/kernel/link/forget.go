package link

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
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
	if err != nil || len(found) == 0 {
		return err
	}
	c, err := openSender()
	if err != nil {
		return err
	}
	for _, m := range found {
		list, wrong := only(m.Data, unix.SizeofNdMsg, unix.NDA_DST)
		n := neighbourOf(m.Data)
		n.flags &= unix.NTF_PROXY
		if wrong == nil {
			wrong = c.send(m.Type, 0, append(n.header(), marshal(list...)...))
		}
		if wrong != nil && !errors.Is(wrong, unix.ENOENT) { // it ended meanwhile
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
	c, err := openSender()
	if err != nil {
		return err
	}
	flush := marshal(nested(unix.IFLA_LINKINFO,
		netlink.Attribute{Type: unix.IFLA_INFO_KIND, Data: nl.ZeroTerminated("bridge")},
		nested(unix.IFLA_INFO_DATA, netlink.Attribute{Type: nl.IFLA_BR_FDB_FLUSH})))
	for _, b := range all {
		s, wrong := parseLink(b)
		if wrong == nil && s.Kind == "bridge" {
			wrong = c.send(unix.RTM_NEWLINK, 0, append(linkHeader(s.Index, 0, 0), flush...))
		}
		if wrong != nil && !errors.Is(wrong, unix.ENODEV) { // it ended meanwhile
			err = errors.Join(err, fmt.Errorf("flush addresses of bridge %s: %w", s.Name, wrong))
		}
	}
	return errors.Join(err, c.Close())
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
	if err != nil || len(found) == 0 {
		return err
	}
	c, err := openSender()
	if err != nil {
		return err
	}
	for _, m := range found {
		if wrong := c.send(m.Type, 0, m.Data); wrong != nil && !errors.Is(wrong, unix.ESRCH) {
			err = errors.Join(err, fmt.Errorf("remove an exception from a route: %w", wrong))
		}
	}
	return errors.Join(err, c.Close())
}
