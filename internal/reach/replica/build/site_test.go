package build

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica/jail"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == probeArg {
		probed(os.Args[2:])
		return
	}
	if len(os.Args) < 2 || os.Args[1] != replica.Arg {
		os.Exit(m.Run())
	}
	if err := Main(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if len(os.Args) > 2 && os.Args[2] == jail.Arg {
		// Nobody reads the race detector's report of a jail's first process. Without GORACE in its
		// environment, which is empty, os.Exit would end each a second late.
		syscall.Exit(0)
	}
}

// site is a machine, number 0, and its containers; another machine is at eth0, beyond the copy.
type site struct {
	t        *testing.T
	spaces   []*netns.NS
	tids     []int    // of spaces
	settings []string // of namespaces before they have devices
	other    *netns.NS
}

// newSite has the smallest form of a machine with Docker: docker0 with containers 2 and 3.
func newSite(t *testing.T, settings ...string) *site {
	s := &site{t: t, other: netnstest.New(t), settings: settings}
	s.add()
	tid, err := s.other.TID()
	if err != nil {
		t.Fatal(err)
	}
	s.ip(0, fmt.Sprint("link add eth0 type veth peer name eth0 netns ", tid))
	s.setIn(s.other, noDAD...)
	s.in(s.other, "ip link set lo up")
	s.in(s.other, "ip link set eth0 up")
	s.in(s.other, "ip addr add 192.0.2.20/24 dev eth0")
	s.ip(0, "link set eth0 up", "addr add 192.0.2.10/24 dev eth0",
		"route add default via 192.0.2.20", "link add docker0 type bridge",
		"addr add 172.17.0.1/16 dev docker0", "link set docker0 up")
	s.set(0, "net.ipv4.ip_forward=1")
	for i := 2; i <= 3; i++ {
		s.container(i)
	}
	testwait.Until(t, time.Minute, "the other machine has its address", func() bool {
		return !slices.Contains(strings.Fields(s.in(s.other, "ip -6 -o addr")), "tentative")
	})
	return s
}

var noDAD = []string{"net.ipv6.conf.all.accept_dad=0", "net.ipv6.conf.default.accept_dad=0"}

func (s *site) add() int {
	ns := netnstest.New(s.t)
	tid, err := ns.TID()
	if err != nil {
		s.t.Fatal(err)
	}
	s.spaces, s.tids = append(s.spaces, ns), append(s.tids, tid)
	i := len(s.tids) - 1
	s.set(i, noDAD...)
	s.set(i, s.settings...)
	s.ip(i, "link set lo up")
	return i
}

func (s *site) container(n int) {
	i := s.add()
	s.ip(0, fmt.Sprintf("link add veth%d type veth peer name eth0 netns %d", n, s.tids[i]),
		fmt.Sprintf("link set veth%d master docker0 up", n))
	s.ip(i, "link set eth0 up", fmt.Sprintf("addr add 172.17.0.%d/16 dev eth0", n),
		"route add default via 172.17.0.1")
}

func (s *site) ip(space int, commands ...string) {
	s.t.Helper()
	for _, c := range commands {
		s.in(s.spaces[space], "ip "+c)
	}
}

func (s *site) set(space int, settings ...string) {
	s.t.Helper()
	s.setIn(s.spaces[space], settings...)
}

func (s *site) setIn(ns *netns.NS, settings ...string) {
	s.t.Helper()
	err := ns.Do(func() error {
		for _, x := range settings {
			key, value, _ := strings.Cut(x, "=")
			if err := sysctl.Set(key, value); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) in(ns *netns.NS, command string) string {
	s.t.Helper()
	args := strings.Fields(command)
	cmd := exec.Command(args[0], args[1:]...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := ns.Start(cmd); err != nil {
		s.t.Skipf("needs %s: %v", args[0], err)
	}
	if err := cmd.Wait(); err != nil {
		s.t.Fatalf("%s: %v: %s", command, err, out.String())
	}
	return out.String()
}

// machine reads the site without searching this machine for namespaces.
func (s *site) machine() *replica.Machine {
	s.t.Helper()
	m := &replica.Machine{}
	for i, ns := range s.spaces {
		var space replica.Space
		err := ns.Do(func() (err error) {
			if space.Links, err = link.ReadSettled(); err != nil {
				return err
			}
			var names []string
			for j := range space.Links {
				l := &space.Links[j]
				names = append(names, l.Name)
				if l.ParentSpace < 0 {
					continue
				}
				l.ParentSpace = s.numbered(l.ParentSpace)
			}
			if err = cmp.Or(space.ReadNetwork()...); err != nil {
				return err
			}
			space.Sysctls = sysctl.ReadAll(names)
			if space.Nft, err = nft.Save(); err != nil {
				return err
			}
			space.Legacy, err = xtables.Save()
			return err
		})
		if err != nil {
			s.t.Fatalf("read namespace %d: %v", i, err)
		}
		m.Spaces = append(m.Spaces, space)
	}
	return m
}

// numbered runs in the namespace whose number it is.
func (s *site) numbered(id int) int {
	for i, tid := range s.tids {
		if got, err := link.NamespaceID(tid); err == nil && got == id {
			return i
		}
	}
	return link.Elsewhere
}

func (s *site) start(m *replica.Machine, sockets ...replica.Socket) *replica.Session {
	s.t.Helper()
	r, err := replica.Start(context.Background(), m, sockets)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { r.Close() })
	for _, l := range r.Lacks() {
		s.t.Errorf("the copy lacks %+v", l)
	}
	return r
}

func socket(space int, addr string) replica.Socket {
	return replica.Socket{Space: space, Proto: "tcp", Addr: netip.MustParseAddrPort(addr)}
}

func (s *site) dial(r *replica.Session, c replica.Client, to string) replica.Answer {
	s.t.Helper()
	got, err := r.Dial(context.Background(), []replica.Dial{
		{Client: c, Proto: "tcp", To: netip.MustParseAddrPort(to)}})
	if err != nil {
		s.t.Fatal(err)
	}
	return got[0]
}

func (s *site) tid(space int) string { return strconv.Itoa(s.tids[space]) }
