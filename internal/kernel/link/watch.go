package link

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Watch counts changes of settings in a network namespace, including those that were undone. It
// does not slow down packets. The namespace lives until Close. Any thread may call the methods.
type Watch struct {
	fd int

	mu     sync.Mutex
	links  map[int]watched
	counts Changes
}

// Changes holds numbers of changes.
type Changes struct {
	Traffic map[string]int
	// changes of MTU, queue length, master, sizes and administrative state
	Links    map[string]int
	Routes   int
	Policies int
	// Lost means that some changes were not read.
	Lost bool
}

type watched struct {
	name  string
	state string
}

var watchGroups = []int{unix.RTNLGRP_LINK, unix.RTNLGRP_TC, unix.RTNLGRP_IPV4_ROUTE,
	unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE}

// hear opens a socket that receives messages of a netlink protocol's groups, as far as the kernel
// has these.
func hear(protocol int, groups ...int) (fd int, err error) {
	fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK,
		protocol)
	if err != nil {
		return -1, fmt.Errorf("watch network settings: %w", err)
	}
	err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	for _, g := range groups {
		if err == nil || errors.Is(err, unix.EINVAL) { // it lacks the group before
			err = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, g)
		}
	}
	if err != nil && !errors.Is(err, unix.EINVAL) {
		return -1, errors.Join(fmt.Errorf("watch network settings: %w", err), unix.Close(fd))
	}
	return fd, nil
}

const watchBuffer = 1 << 20 // some thousand changes

// NewWatch starts counting. The caller closes the Watch.
func NewWatch() (*Watch, error) {
	fd, err := hear(unix.NETLINK_ROUTE, watchGroups...)
	if err != nil {
		return nil, err
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, watchBuffer) != nil {
		// up to net.core.rmem_max
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, watchBuffer)
	}
	w := &Watch{fd: fd, links: map[int]watched{},
		counts: Changes{Traffic: map[string]int{}, Links: map[string]int{}}}
	all, err := dump(netlink.LinkList)
	for _, l := range all {
		w.links[l.Attrs().Index] = watchedOf(l)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("watch network settings: %w", err), unix.Close(fd))
	}
	return w, nil
}

// Close ends the watch.
func (w *Watch) Close() error { return unix.Close(w.fd) }

func watchedOf(l netlink.Link) watched {
	a := l.Attrs()
	return watched{a.Name, fmt.Sprint(a.MTU, a.TxQLen, a.MasterIndex, a.GSOMaxSize, a.GSOMaxSegs,
		a.GROMaxSize, a.GSOIPv4MaxSize, a.GROIPv4MaxSize,
		a.Flags&net.FlagUp)}
}

// Read returns the changes so far. It counts only routes for which ours returns true.
func (w *Watch) Read(ours func(Routed) bool) (Changes, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	buffer := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(w.fd, buffer, 0)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return w.counts, nil
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ENOBUFS):
			w.counts.Lost = true
			continue
		case err != nil:
			return w.counts, fmt.Errorf("read changes of network settings: %w", err)
		}
		messages, err := syscall.ParseNetlinkMessage(buffer[:n])
		if err != nil {
			return w.counts, fmt.Errorf("read changes of network settings: %w", err)
		}
		for _, m := range messages {
			w.count(m, ours)
		}
	}
}

func (w *Watch) count(m syscall.NetlinkMessage, ours func(Routed) bool) {
	switch m.Header.Type {
	case unix.RTM_NEWLINK:
		w.link(m)
	case unix.RTM_NEWQDISC, unix.RTM_DELQDISC, unix.RTM_NEWTCLASS, unix.RTM_DELTCLASS,
		unix.RTM_NEWTFILTER, unix.RTM_DELTFILTER,
		unix.RTM_NEWCHAIN, unix.RTM_DELCHAIN:
		if len(m.Data) >= nl.SizeofTcMsg {
			w.counts.Traffic[w.links[int(nl.DeserializeTcMsg(m.Data).Ifindex)].name]++
		}
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		if r, err := parseRoute(m.Data); err == nil && r.Flags&unix.RTM_F_CLONED == 0 &&
			r.stays() && ours(r.routed(w.names())) {
			w.counts.Routes++
		}
	case unix.RTM_NEWRULE, unix.RTM_DELRULE:
		w.counts.Policies++
	}
}

func (w *Watch) link(m syscall.NetlinkMessage) {
	if len(m.Data) < unix.SizeofIfInfomsg || m.Data[0] != unix.AF_UNSPEC {
		return
	}
	l, err := netlink.LinkDeserialize(&unix.NlMsghdr{Type: m.Header.Type}, m.Data)
	if err != nil || l.Attrs().MTU == 0 {
		return
	}
	now := watchedOf(l)
	if was, ok := w.links[l.Attrs().Index]; ok && was.state != now.state {
		w.counts.Links[now.name]++
	}
	w.links[l.Attrs().Index] = now
}

func (w *Watch) names() map[int]string {
	out := make(map[int]string, len(w.links))
	for index, l := range w.links {
		out[index] = l.name
	}
	return out
}
