package docker

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// The tests run again in this binary, linked statically, in namespaces with a dockerd of their own.
const (
	daemonEnv = "BRIDGETOLL_TEST_DAEMON" // the dockerd's directory
	flagsEnv  = "BRIDGETOLL_TEST_FLAGS"
	modesEnv  = "BRIDGETOLL_TEST_MODES"
	swarmEnv  = "BRIDGETOLL_TEST_SWARM" // "true" starts a swarm
)

func TestMain(m *testing.M) {
	pathtest.Main()
	if ours, err := Inner(os.Args[1:]); ours {
		if err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if code, entered := enterRootless(); entered {
		os.Exit(code)
	}
	code := m.Run()
	pathtest.RemoveToll()
	if beside != nil {
		beside.Stop()
	}
	os.Exit(code)
}

func TestEngines(t *testing.T) {
	if os.Getenv(daemonEnv) != "" {
		t.Skip("it is what runs this")
	}
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "dockerd needs root")
	}
	for _, program := range []string{"dockerd", "ovs-vswitchd", "setpriv"} {
		if _, err := exec.LookPath(program); err != nil {
			pathtest.SkipOrFail(t, "no %s: make deps", program)
		}
	}
	tester, toll := pathtest.StaticSelf(t), pathtest.Toll(t)
	for _, e := range pathtest.Engines(t) {
		for _, b := range benches {
			t.Run(e.Name+"/"+b.name, func(t *testing.T) {
				t.Parallel()
				e.Ran(t, "modes")
				b.run(t, tester, toll, e)
			})
			// a swarm is incompatible with nftables
			if b.swarm || b.settings || !writesNftables(e) {
				continue
			}
			native := b
			// the other tests write iptables rules
			native.tests = "(Conformance|Second)"
			if b.modes == nil {
				native.tests = "(Conformance|Inspect|Second|Daemon|Keeps)"
			}
			native.flags += " " + nativeFlag
			t.Run(e.Name+"/nftables/"+b.name, func(t *testing.T) {
				t.Parallel()
				e.Ran(t, "modes with nftables")
				native.run(t, tester, toll, e)
			})
		}
	}
}

func writesNftables(e pathtest.Engine) bool {
	flag, _, _ := strings.Cut(nativeFlag, "=")
	return strings.Contains(e.Says("--help"), flag)
}

type bench struct {
	name, flags, tests string
	modes              []mode.Name // nil: all that ask for no other daemon
	swarm              bool
	settings           bool // the daemon is as proxy's, at the same time
}

const (
	noProxy    = "--userland-proxy=false"
	nativeFlag = "--firewall-backend=nftables"
)

var benches = []bench{
	{name: "proxy", tests: "(Conformance|Daemon|Keeps|Cleans|Refuses)"},
	{name: "no-proxy", modes: []mode.Name{mode.PublishDefault, mode.PublishNAT, mode.PublishProxy,
		mode.Link}, tests: "(Conformance|Second|Leaves|Apart|RefusesOtherWays)",
		flags: noProxy + " --icc=false --experimental --ip6tables"},
	{name: "more", modes: []mode.Name{mode.Pipework, mode.OVS, mode.MacvlanVEPA, mode.Overlay},
		tests: "(Conformance|Drain|Leaves)", swarm: true},
	{name: "settings", tests: "(Inspect|Second|Tunes|Default)", settings: true},
	{name: "remapped", tests: "RemappedInFullPools", settings: true,
		flags: "--userns-remap=nobody:nogroup --default-address-pool=base=10.200.0.0/24,size=25"},
	{name: "ruleless", tests: "Ruleless", settings: true,
		flags: "--iptables=false --ip-masq=false"},
}

var withBoth = []mode.Name{mode.PublishDefault, mode.PublishProxy}

func (b bench) listed() string {
	var out []string
	for _, m := range mode.OfDocker() {
		elsewhere := !slices.Contains(withBoth, m.Name) &&
			slices.ContainsFunc(benches, func(o bench) bool {
				return slices.Contains(o.modes, m.Name)
			})
		if slices.Contains(b.modes, m.Name) ||
			b.modes == nil && recipes[m.Name].build != nil && !elsewhere {
			out = append(out, string(m.Name))
		}
	}
	return strings.Join(out, ",")
}

// namespaces makes the daemon's machine, with a fresh /sys for its own devices. The first card has
// a neighbour that never answers, the second a switch that reflects frames. The shell's first
// thread ends all processes.
const namespaces = `set -e
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs "$` + daemonEnv + `"
mkdir -p /run/lock /run/netns /run/s
mount -t sysfs sysfs /run/s
mount --rbind /sys/fs/cgroup /run/s/fs/cgroup
mount --rbind /run/s /sys
ip link set lo up
ip link add card0 type veth peer name card1
ip addr add 198.18.7.2/24 dev card0
ip link set card0 up
ip link set card1 up
ip addr add 2001:2:0:7::2/64 dev card0 nodad
ip -6 route add default via 2001:2:0:7::1
ip route add default via 198.18.7.1
ip link add card2 type veth peer name card3
ip link set card2 up
beside() { setpriv --pdeathsig KILL "$@" </dev/null >/dev/null 2>&1 & }
beside unshare --net sleep infinity
until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/self/ns/net)" ] 2>/dev/null; do sleep 0.01; done
ip link set card3 netns $!
nsenter --net=/proc/$!/ns/net sh -ec 'ip link add switch type bridge; ip link set card3 master switch
bridge link set dev card3 hairpin on; ip link set switch up; ip link set card3 up'
mkdir -p /run/openvswitch
ovsdb-tool create /run/openvswitch/conf.db
beside ovsdb-server /run/openvswitch/conf.db --remote=punix:/run/openvswitch/db.sock --pidfile --unixctl=/run/openvswitch/ovsdb.ctl -vsyslog:off
until ovs-vsctl --no-syslog --no-wait init 2>/dev/null; do sleep 0.01; done
beside ovs-vswitchd --pidfile -vsyslog:off
case "$` + flagsEnv + `" in *nftables*) # dockerd then leaves forwarding to others
	sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv6.conf.default.forwarding=1;;
*userns-remap*)
	echo nobody:200000:65536 >/run/subids
	for ids in subuid subgid; do touch /etc/$ids; mount --bind /run/subids /etc/$ids; done;;
esac
exec "$@"`

func (b bench) run(t *testing.T, tester, toll string, e pathtest.Engine) {
	home, err := os.MkdirTemp("", "toll-docker") // short, because of the sockets in it
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	args := []string{"-c", namespaces, "bash", tester, "-test.run", "^TestBeside" + b.tests,
		"-test.timeout", "20m"}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	cmd := exec.Command("bash", args...)
	// Unshareflags also make the mounts private.
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET,
		Unshareflags: unix.CLONE_NEWNS}
	cmd.Env = append(os.Environ(), daemonEnv+"="+home, flagsEnv+"="+b.flags,
		modesEnv+"="+b.listed(), swarmEnv+"="+strconv.FormatBool(b.swarm),
		pathtest.TollEnv+"="+toll,
		"DOCKER_HOST=unix://"+home+"/sock", "XDG_STATE_HOME="+home+"/state", "TMPDIR="+home)
	cmd.Env = append(cmd.Env, e.Env()...)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}

var beside *pathtest.Dockerd

func daemon(t *testing.T) *pathtest.Dockerd {
	t.Helper()
	home := os.Getenv(daemonEnv)
	if home == "" {
		t.Skip("TestEngines runs it beside a daemon")
	}
	if beside == nil {
		beside = &pathtest.Dockerd{Home: home, Flags: strings.Fields(os.Getenv(flagsEnv))}
		beside.Start(t)
		if inSwarm() {
			sh(t, "docker swarm init --advertise-addr 198.18.7.2")
		}
	}
	return beside
}
