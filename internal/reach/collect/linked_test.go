package collect

import (
	"errors"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// A stranger has an address in docker0's network, but no link to it. Containers in a container may
// have the addresses of those outside.
func TestLinked(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "network namespaces need root")
	}
	c := &collector{f: &ports.Facts{}, root: true}
	spaces := map[string]*netns.NS{}
	for _, name := range []string{"machine", "neighbour", "stranger", "inner", "web", "nameless"} {
		ns := netnstest.New(t)
		tid, err := ns.TID()
		if err != nil {
			t.Fatal(err)
		}
		id, err := netns.ID(tid)
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv(name, strconv.Itoa(tid))
		spaces[name] = ns
		if name == "machine" {
			c.pid, c.f.Space = tid, id
		}
		if name == "nameless" {
			continue
		}
		c.procs = append(c.procs, process{Process: ports.Process{PID: tid, Name: name},
			space: id})
	}
	for _, x := range []struct{ in, commands string }{
		{"machine", `ip link add docker0 type bridge
ip addr add 172.17.0.1/16 dev docker0
ip link set docker0 up
ip link add veth1 type veth peer name eth0 netns $web
ip link set veth1 master docker0 up
ip link add eth0 type veth peer name eth0 netns $neighbour
ip addr add 192.0.2.10/24 dev eth0
ip link set eth0 up`},
		{"web", `ip link set lo up
ip addr add 172.17.0.2/16 dev eth0
ip link set eth0 up
ip link add docker0 type bridge
ip link add veth1 type veth peer name eth0 netns $inner
ip link set veth1 master docker0 up
ip link add v0 type veth peer name v1
ip link add eth1 type veth peer name eth0 netns $nameless`},
		{"machine", "ip link add link eth0 name eth2 netns $web type macvlan"},
		{"inner", "ip addr add 172.17.0.2/16 dev eth0"},
		{"neighbour", "ip addr add 192.0.2.20/24 dev eth0"},
		{"stranger", "ip link add br0 type bridge; ip addr add 172.17.0.9/16 dev br0"},
	} {
		err := spaces[x.in].Do(func() error {
			out, err := exec.Command("sh", "-ec", x.commands).CombinedOutput()
			if err != nil {
				return errors.New(string(out))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	err := spaces["web"].Do(func() error {
		// Nobody accepts the connection.
		l, err := net.Listen("tcp6", "[::]:80")
		if err != nil {
			return err
		}
		t.Cleanup(func() { l.Close() })
		conn, err := net.Dial("tcp6", "[::1]:80")
		if err != nil {
			return err
		}
		t.Cleanup(func() { conn.Close() })
		return nil
	})
	if err == nil {
		err = spaces["machine"].Do(func() error {
			c.network()
			c.spaces()
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range c.f.Containers {
		got = append(got, x.Name)
		if l := x.Listeners; x.Rootless && len(l) > 0 || !x.Rootless && (len(l) != 1 ||
			!l[0].V6Only || l[0].Waiting != 1 || l[0].Backlog == 0) {
			t.Errorf("%+v", x)
		}
	}
	if want := []string{"web (own network)", "inner (own network)"}; !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
	web, inner := c.f.Containers[0], c.f.Containers[1]
	peers := map[string]string{}
	for _, d := range web.Devices {
		peers[d.Name] = d.PeerSpace
	}
	if want := map[string]string{"lo": "", "docker0": "", "eth0": c.f.Space, "eth2": c.f.Space, "v0": web.Space,
		"v1": web.Space, "veth1": inner.Space, "eth1": ports.Nameless}; !maps.Equal(peers, want) {
		t.Errorf("the veths of web lead to %v, want %v", peers, want)
	}
	if inner.Devices[1].PeerSpace != web.Space || !inner.ListenersKnown {
		t.Errorf("%+v", c.f.Containers)
	}
}

// The kernel lists sockets in an order that varies.
func TestMainServer(t *testing.T) {
	l := func(proto, addr string, owners ...string) (out ports.Listener) {
		out.Proto, out.Addr = proto, netip.MustParseAddrPort(addr)
		for _, name := range owners {
			out.Owners = append(out.Owners, ports.Process{Name: name})
		}
		return out
	}
	all := []ports.Listener{l("tcp", "127.0.0.1:22"), l("tcp", "0.0.0.0:80", "web", "worker"),
		l("tcp", "127.0.0.1:9000", "metrics"), l("udp", "0.0.0.0:53", "resolver")}
	for range all {
		all = append(all[1:], all[0])
		if got := mainServer(all); got != "web" {
			t.Errorf("%v: %q", all, got)
		}
	}
	if got := mainServer(all[:0]); got != "" {
		t.Errorf("no sockets: %q", got)
	}
}
