package swarm

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// besideEnv makes this binary run on a node of a swarm, as toll.
const (
	besideEnv = "BRIDGETOLL_TEST_SWARM"
)

// TestMain is also the program in the test's image: an agent with workers.
func TestMain(m *testing.M) {
	pathtest.Main()
	if len(os.Args) > 1 && os.Args[1] == agent.Arg {
		os.Exit(asAgent(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "image" {
		if _, archive, err := dockerapi.PackedArchive("", dockerapi.NodeRepository); err == nil {
			_, _ = os.Stdout.Write(archive)
		}
		os.Exit(0)
	}
	code := m.Run()
	pathtest.RemoveToll()
	os.Exit(code)
}

func asAgent(args []string) int {
	var c agent.Config
	f := flag.NewFlagSet(agent.Arg, flag.ExitOnError)
	bundle := f.String("bundle", "", "")
	f.Func("dial", "", func(s string) error {
		at, err := netip.ParseAddrPort(s)
		c.Dial = append(c.Dial, at)
		return err
	})
	_ = f.Parse(args)
	c.ID, c.Name, c.Version = os.Getenv("BRIDGETOLL_AGENT_ID"), os.Getenv("BRIDGETOLL_AGENT_NAME"),
		testVersion
	c.Starts = []string{pathtest.Arg}
	var err error
	if c.Bundle, err = os.ReadFile(*bundle); err == nil {
		err = agent.Main(context.Background(), c)
	}
	if err != nil {
		return 1
	}
	return 0
}

const testVersion = "test"

func (c *testCluster) test(t *testing.T, tester, name string) {
	t.Helper()
	cmd := c.on(1, tester, "-test.run", name, "-test.v")
	cmd.Env = append(cmd.Env, besideEnv+"=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}

func (c *testCluster) isAs(t *testing.T, before, after string) {
	t.Helper()
	now := ""
	if !testwait.Met(patience, func() bool {
		now = c.run(t, 1, "sh", "-c", left)
		return now == before
	}) {
		t.Errorf("after %s, something is left:\n%s\nbefore:\n%s", after, now, before)
	}
}

const left = "docker service ls -q; docker secret ls -q; docker network ls -q --filter " +
	"driver=overlay --filter label=io.bridgetoll.run; " +
	"docker images -q 127.0.0.1:1/bridgetoll; docker ps -aq; ls $XDG_STATE_HOME/bridgetoll " +
	"2>/dev/null || true"

func TestSwarm(t *testing.T) {
	if os.Getenv(besideEnv) != "" {
		t.Skip("it is what runs this")
	}
	pathtest.NeedsDaemons(t, "tc", "nft")
	toll, tester := pathtest.Toll(t), pathtest.StaticSelf(t)
	for _, e := range pathtest.Engines(t) { // in turn: only the test may make nodes slow
		t.Run(e.Name, func(t *testing.T) {
			for name, test := range map[string]func(*testing.T, *testCluster, string,
				string){"measures": measures, "goes on": goesOn} {
				// on swarms of their own, for which they mostly wait
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					test(t, newCluster(t, e, 3, 3), toll, tester)
				})
			}
		})
	}
}

// usualRate is less than the CPUs can send.
const usualRate = "1gbit"

func (c *testCluster) shape(t *testing.T, rate string, wires ...string) {
	t.Helper()
	for _, wire := range wires {
		c.run(t, 0, "tc", "qdisc", "replace", "dev", wire, "root", "tbf", "rate", rate, "burst",
			"256kb", "latency", "20ms")
	}
}

func measures(t *testing.T, c *testCluster, toll, tester string) {
	c.shape(t, usualRate, "w1", "w2", "w3")
	before := c.run(t, 1, "sh", "-c", left)
	clean := func(t *testing.T, after string) {
		t.Helper()
		c.isAs(t, before, after)
	}

	t.Run("no image", func(t *testing.T) {
		code, _, errOut := c.toll(t, 1, toll, "mesh", "--rounds", "1", "--window", "50ms")
		if code != 3 || !strings.Contains(errOut, "does not have toll's image") ||
			!strings.Contains(errOut, "toll: hint: toll image | ssh node") {
			t.Errorf("exit %d:\n%s", code, errOut)
		}
		clean(t, "a run without the image")
	})
	for _, node := range []int{2, 3} {
		c.run(t, node, "sh", "-c", toll+" image | docker load")
	}

	t.Run("conformance", func(t *testing.T) {
		for _, node := range []int{2, 3} {
			c.run(t, node, "sh", "-c", tester+" image | docker load")
		}
		c.test(t, tester, "^TestBeside$")
		clean(t, "the conformance suite")
	})

	t.Run("compare", func(t *testing.T) {
		code, out, errOut := c.toll(t, 1, toll, "compare", "host", "publish-nat", "publish-ingress",
			"overlay", "overlay-encrypted", "--on", "swarm",
			"--nodes", "node2,node3", "--rounds", "1", "--window", "50ms", "--details", "--load",
			"bulk,rr,stream")
		wants := []string{"from a container on another machine", "overlay",
			"server on node2 (10.77.0.2)", "client on node3", "CONFIG_INET_ESP"}
		if !hasIPVS() {
			wants = append(wants, "node node2 has no IPVS, which the routing mesh needs",
				"CONFIG_IP_VS", "sudo modprobe ip_vs there, and restart docker")
		}
		words := strings.Join(strings.Fields(out), " ")
		for _, want := range wants {
			if !strings.Contains(words, strings.TrimSpace(want)) {
				t.Errorf("%q is missing", want)
			}
		}
		if code != 0 && code != 4 || strings.Contains(words, "not witnessed") ||
			strings.Contains(words, ": build ") {
			t.Errorf("exit %d", code)
		}
		if t.Failed() {
			t.Logf("%s%s", out, errOut)
		}
		clean(t, "a comparison")
	})

	t.Run("outward", func(t *testing.T) {
		testwait.Unhindered(t, 2*patience, func(u testing.TB) { // a visit may fail
			code, out, errOut := c.toll(t, 1, toll, "compare", "bridge-default", "overlay", "--on",
				"swarm", "--to", "outside", "--nodes", "node2,node3", "--rounds", "1", "--window",
				"50ms", "--load", "bulk,rr,crr,udp-rr", "--details")
			for _, want := range []string{"Another container → outside, rr", "host :out",
				"bridge-default :out", "overlay :out", "·MASQ·wire"} {
				if !strings.Contains(out, want) {
					u.Errorf("%q is missing", want)
				}
			}
			if strings.Contains(out, "not witnessed") {
				t.Errorf("%s", out)
			}
			if code != 0 || !strings.Contains(out, "Every row was witnessed") {
				u.Errorf("exit %d:\n%s%s", code, out, errOut)
			}
		})
		clean(t, "a comparison outward")
	})

	t.Run("settings", func(t *testing.T) {
		settings(t, c, toll)
		clean(t, "what was done to its paths")
	})

	t.Run("addresses taken", func(t *testing.T) {
		addressesTaken(t, c, toll)
		clean(t, "a second network")
	})

	t.Run("mesh", func(t *testing.T) {
		// Node 3's wire is slow both ways.
		c.shape(t, "40mbit", "w3")
		c.run(t, 3, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "40mbit", "burst",
			"64kb", "latency", "20ms")
		testwait.Unhindered(t, 2*patience, func(u testing.TB) { slowNode(u, c, toll) })
		c.shape(t, usualRate, "w3")
		c.run(t, 3, "tc", "qdisc", "del", "dev", "eth0", "root")
		clean(t, "a mesh")
	})

	t.Run("loses", func(t *testing.T) { loses(t, c, toll) })
}

func slowNode(u testing.TB, c *testCluster, toll string) {
	u.Helper()
	code, out, errOut := c.toll(u, 1, toll, "mesh", "--rounds", "5", "--window", "100ms",
		"--format", "json")
	var report struct {
		Mesh struct {
			Faults []struct {
				Kind  string
				Nodes []string
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 {
		u.Fatalf("exit %d, %v\n%s%s", code, err, out, errOut)
	}
	named := false
	for _, f := range report.Mesh.Faults {
		named = named || f.Kind == "node" && slices.Equal(f.Nodes, []string{"node3"})
		// one of its links may be even slower on a busy machine
		if !slices.Contains(f.Nodes, "node3") {
			u.Errorf("%+v", f)
		}
	}
	if !named {
		u.Errorf("the slow wire of node3 was not named:\n%s", out)
	}
}

// goesOn loses a node, a leader, or toll itself.
func goesOn(t *testing.T, c *testCluster, toll, _ string) {
	c.shape(t, usualRate, "w1", "w2", "w3")
	dir := t.TempDir()
	before := c.run(t, 1, "sh", "-c", left)
	clean := func(t *testing.T, after string) {
		t.Helper()
		c.isAs(t, before, after)
	}
	for _, node := range []int{2, 3} {
		c.run(t, node, "sh", "-c", toll+" image | docker load")
	}

	t.Run("killed", func(t *testing.T) {
		r := c.start(t, 1, toll, dir)
		c.run(t, 1, "pkill", "-KILL", "-f", r.mark)
		<-r.over
		_, out, errOut := c.toll(t, 1, toll, "clean")
		if !strings.Contains(out, "removed service toll-") ||
			!strings.Contains(out, "removed secret toll-") {
			t.Errorf("toll clean: %s%s", out, errOut)
		}
		clean(t, "SIGKILL and toll clean")
	})

	t.Run("another machine's", func(t *testing.T) {
		mark := "00000000000000000000000000000000/b/pid:[1]/1/1"
		c.run(
			t, 1, "sh", "-c",
			"docker service create -d --no-resolve-image --name toll-else --replicas 0 -l "+
				"io.bridgetoll.run="+mark+" 127.0.0.1:1/bridgetoll:none")
		_, out, _ := c.toll(t, 1, toll, "clean")
		if !strings.Contains(out, "left alone: service toll-else") {
			t.Errorf("toll clean: %s", out)
		}
		if _, out, _ = c.toll(t, 1, toll, "clean", "--force"); !strings.Contains(out,
			"removed service toll-else") {
			t.Errorf("toll clean --force: %s", out)
		}
		clean(t, "toll clean --force")
	})

	for what, fault := range map[string][2]string{
		"hangs": {"kill -STOP $(" + agentOn3 + ")", "kill -CONT $(" + agentOn3 + ") || true"},
		"drained": {"docker node update --availability drain node3",
			"docker node update --availability active node3"},
		"cut off": {"ip -n n3 link set eth0 down",
			"ip -n n3 link set eth0 up; ip -n n3 route add default via 10.77.0.254"},
	} {
		t.Run(what, func(t *testing.T) {
			r := c.start(t, 1, toll, dir)
			c.run(t, faultAt[what], "sh", "-c", strings.ReplaceAll(fault[0], "DIR", c.dir))
			r.goesOn(t)
			c.run(t, faultAt[what], "sh", "-c", strings.ReplaceAll(fault[1], "DIR", c.dir))
			r.interrupt(t, c)
			// On a busy machine none of its visits may have ended before.
			if said := r.said.String(); !strings.Contains(said, "node3 left in the middle of the run: ") &&
				!strings.Contains(said, "node3: never answered: node node3 left: ") {
				t.Errorf("it does not say that node3 left:\n%s", said)
			}
			clean(t, "a run whose node was "+what)
			c.settles(t)
		})
	}

	t.Run("another leader", func(t *testing.T) {
		c.run(t, 1, "sh", "-c", toll+" image | docker load")
		testwait.Until(t, patience, "node2 knows the leader", func() bool {
			return c.on(2, "timeout", "5", "docker", "info").Run() == nil
		})
		r := c.start(t, 2, toll, dir)
		c.run(t, 0, "sh", "-c", "kill -9 $(cat "+c.dir+"/1/pid)") // its dockerd; the agent lives on
		r.interrupt(t, c)
		var (
			out []byte
			err error
		)
		if !testwait.Met(patience, func() bool {
			// there may be no leader yet
			out, err = c.on(
				2, "sh", "-c", "docker service ls -q && docker secret ls -q").CombinedOutput()
			return err == nil && len(out) == 0
		}) {
			t.Fatalf("something is left: %s %v\n%s", out, err, r.said)
		}
	})
}

func loses(t *testing.T, c *testCluster, toll string) {
	c.run(
		t, 2, "sh", "-c",
		"nft add table ip loses && nft 'add chain ip loses in { type filter hook input priority "+
			"0; }' && nft add rule ip loses in ip saddr 10.77.0.3 numgen random mod 100 == 0 drop")
	defer c.run(t, 2, "nft", "delete", "table", "ip", "loses")
	testwait.Unhindered(t, 2*patience, func(u testing.TB) { lossyLink(u, c, toll) })
}

func lossyLink(u testing.TB, c *testCluster, toll string) {
	u.Helper()
	_, out, errOut := c.toll(u, 1, toll, "mesh", "--rounds", "6", "--window", "300ms", "--load",
		"bulk", "--format", "json")
	var report struct {
		Mesh struct {
			Faults []struct {
				Kind, Metric, Way string
				Nodes             []string
				Out               float64 `json:"rate_out"`
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		u.Fatalf("%v\n%s%s", err, out, errOut)
	}
	for _, f := range report.Mesh.Faults {
		if f.Kind == "link" && f.Metric == "retransmission_rate" && f.Way == "out" &&
			slices.Equal(f.Nodes, []string{"node3", "node2"}) && f.Out > 0.003 && f.Out < 0.1 {
			return
		}
	}
	u.Errorf("what node3 loses to node2 was not named: %+v\n%s", report.Mesh.Faults, errOut)
}

const agentOn3 = "docker -H unix://DIR/3/sock inspect -f '{{.State.Pid}}' $(docker -H " +
	"unix://DIR/3/sock ps -q)"

// 0: the switch, 1: the manager
var faultAt = map[string]int{"hangs": 0, "cut off": 0, "drained": 1}

// hasIPVS uses modprobe, as Docker does.
func hasIPVS() bool {
	_, err := os.Stat("/proc/net/ip_vs")
	return err == nil || exec.Command("modprobe", "ip_vs").Run() == nil
}

func TestBeside(t *testing.T) {
	if os.Getenv(besideEnv) == "" {
		t.Skip("TestSwarm runs it on a node")
	}
	ctx := context.Background()
	s := &Swarm{Nodes: []string{"node2", "node3"}, Version: testVersion}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	host := path.Spec{Mode: mode.Host, From: mode.FromRemote, To: mode.ToAddress}
	// The services and their agents stay for the whole run.
	for _, spec := range []path.Spec{host, {Mode: mode.PublishIngress, From: mode.FromRemote,
		To: mode.ToAddress}, {Mode: mode.PublishNAT, From: mode.FromRemote, To: mode.ToAddress},
		{Mode: mode.Overlay, From: mode.FromRemoteContainer, To: mode.ToContainer},
		{Mode: mode.OverlayEncrypted, From: mode.FromRemoteContainer, To: mode.ToContainer}} {
		if err := s.Check(ctx, spec); err != nil && spec.Mode != mode.OverlayEncrypted &&
			(spec.Mode != mode.PublishIngress || hasIPVS()) {
			t.Fatal(err)
		}
	}
	o := promises(s)
	o.Lacks = func(u *machine.UnsupportedError) bool {
		return onOneMachine(u) || errors.Is(u, agent.ErrNone) || // ESP
			errors.Is(u, errNoIPVS) && !hasIPVS()
	}
	all := maps.Clone(recipes)
	maps.Copy(all, outward)
	for m := range all {
		o.Only = m
		pathtest.Run(t, s, o)
	}
}

func onOneMachine(u *machine.UnsupportedError) bool {
	return slices.Contains([]machine.Lack{machine.LackPlacement, machine.LackIPv6,
		machine.LackMode}, u.Lack)
}

func promises(s *Swarm) pathtest.Options {
	return pathtest.Options{Short: true, Lacks: onOneMachine,
		Common: func(path.Hop) bool { return true }, // all paths of a mode have the same tasks
		Around: func(t *testing.T, p *path.Path) (pathtest.Traffic, bool) {
			if p.Spec.Mode == mode.Host {
				return pathtest.Traffic{}, false
			}
			other, err := s.Build(context.Background(),
				path.Spec{Mode: mode.Host, From: mode.FromRemote, To: mode.ToAddress})
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			return pathtest.Exchange(t, other), true
		}}
}
