package cases

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// everything is a situation that has some of everything that a copy may touch.
const everything = "c01_hostport"

// TestNothingLeaves captures packets at every device of a machine and of its containers while a
// copy of it is made, dialled and scanned, and compares the machine's state before and after.
func TestNothingLeaves(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "namespaces of a machine need root")
	}
	t.Parallel()
	s := situations(t, everything)[0]
	s.quiet = true
	m := start(t, s)
	places := []string{"eth0"}
	for p := range m.places() {
		places = append(places, p)
	}
	slices.Sort(places)
	before := m.state(places)
	taps := map[string]*tap{}
	for _, p := range places {
		taps[p] = m.tap(p)
	}
	if out, err := m.command(m.self, "judge", "").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for p, tap := range taps {
		for _, frame := range tap.frames() {
			t.Errorf("%s: a packet left the copy: %x", p, frame)
		}
	}
	for p, after := range m.state(places) {
		if b := before[p]; b != after {
			t.Errorf("%s changed:\n%s", p, changed(b, after))
		}
	}

	// taps see a real client's packets
	d := dial{from: "eth0", proto: "tcp", to: netip.MustParseAddrPort("192.0.2.10:80")}
	if got, err := m.sample(d); err != nil || got.got != string(replica.Connected) {
		t.Fatalf("%s: %s, %v", d, got, err)
	}
	for _, p := range []string{"eth0", "machine", "pod"} {
		testwait.Until(t, patience, "packets are captured in "+p, func() bool {
			return len(taps[p].frames()) > 0
		})
	}
	if after := m.state(places); after["machine"] == before["machine"] {
		t.Error("a connection does not change the state that is compared")
	}
}

// tap captures all packets at the devices of a namespace.
type tap struct {
	fd   int
	seen [][]byte
}

func (m *machine) tap(place string) *tap {
	m.t.Helper()
	tap := &tap{}
	if err := m.in(place, func() (err error) {
		tap.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC,
			int(htons(unix.ETH_P_ALL)))
		return err
	}); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = unix.Close(tap.fd) })
	return tap
}

func htons(n uint16) uint16 { return n<<8 | n>>8 }

// frames returns what was captured so far.
func (t *tap) frames() [][]byte {
	b := make([]byte, 1<<16)
	for {
		n, _, err := unix.Recvfrom(t.fd, b, 0)
		if err != nil {
			return t.seen
		}
		t.seen = append(t.seen, slices.Clone(b[:n]))
	}
}

// state returns what must not change in each place.
func (m *machine) state(places []string) map[string]string {
	m.t.Helper()
	const script = `exec 2>&1
ip -d link | sed -E 's/[a-z_]+_timer +[0-9.]+//g'; ip addr; ip -4 route show table all; ip -6 route show table all | sed 's/ expires .*//'
ip rule; ip -6 rule; ip neigh | sed 's/ \(REACHABLE\|STALE\|DELAY\|PROBE\)//'; ip netns list-id 2>/dev/null | sed 's/ (.*//'
nft list ruleset; bridge fdb | grep -v permanent
cat /proc/net/ip_tables_names /proc/net/ip6_tables_names
awk '{print $1}' /proc/modules
awk '/^(Tcp|Udp):/ && !/Retrans/ {print $1, $6, $7, $8, $9}' /proc/net/snmp
sysctl -a 2>/dev/null | grep -E '^(net|kernel\.(ns|pid)|user|fs)\.' |
	grep -vE 'file-nr|inode|dentry|random|aio-nr|binfmt|nf_conntrack_max|quota'`
	out := map[string]string{}
	for _, p := range places {
		var b []byte
		if err := m.in(p, func() (err error) {
			if b, err = exec.Command("bash", "-c", script).Output(); err != nil {
				return err
			}
			gen, err := generation()
			b = fmt.Appendf(b, "generation of nftables %d\n", gen)
			return err
		}); err != nil {
			m.t.Fatal(err)
		}
		out[p] = string(b)
	}
	return out
}

// generation returns the number of changes of nftables' rules in the thread's namespace.
func generation() (uint32, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	ask := make([]byte, unix.NLMSG_HDRLEN+4)
	binary.NativeEndian.PutUint32(ask, uint32(len(ask)))
	binary.NativeEndian.PutUint16(ask[4:], unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETGEN)
	binary.NativeEndian.PutUint16(ask[6:], unix.NLM_F_REQUEST)
	if err := unix.Sendto(fd, ask, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	b := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, b, 0)
	if err != nil {
		return 0, err
	}
	const header = unix.NLMSG_HDRLEN + 4
	if n < header+8 || binary.NativeEndian.Uint16(b[header+2:]) != unix.NFTA_GEN_ID {
		return 0, fmt.Errorf("the kernel answers %x", b[:n])
	}
	return binary.BigEndian.Uint32(b[header+4:]), nil
}

// changed returns the lines that only one of two texts has.
func changed(before, after string) string {
	var out []string
	only := func(sign, text, other string) {
		has := map[string]bool{}
		for line := range strings.Lines(other) {
			has[line] = true
		}
		for line := range strings.Lines(text) {
			if !has[line] {
				out = append(out, sign+line)
			}
		}
	}
	only("-", before, after)
	only("+", after, before)
	return strings.Join(out, "")
}

// TestKilled kills the process that made a copy, or the copy's own, at any point. Nothing may be
// left.
func TestKilled(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "namespaces of a machine need root")
	}
	t.Parallel()
	s := situations(t, everything)[0]
	m := start(t, s)
	d := m.dump(s)
	d.save(t, m.file("/run/dump.json.gz"))
	// Namespaces that nothing shows count against a limit of their user namespace.
	m.sh(fmt.Sprintf(`unshare -Ur sleep infinity &
until [ "$(cat /proc/$!/comm)" = sleep ]; do sleep 0.01; done
nsenter -t $! -U --preserve-credentials sh -c 'echo %d >/proc/sys/user/max_net_namespaces'
echo $! >/run/limited`, 3*len(d.Machine.Spaces)+3))
	before, mounts := m.processes(), m.mounts()
	judge := func() *exec.Cmd {
		return m.command("bash", "-c", "exec nsenter -t $(cat /run/limited) -U --preserve-credentials "+
			`"$SELF" judge /run/dump.json.gz`)
	}
	m.killed(before, mounts, judge, rand.New(rand.NewPCG(1, 2)), func(i int, fresh []string) string {
		if i%2 == 0 {
			return fresh[0]
		}
		return fresh[len(fresh)-1]
	})
}

// killed begins a program many times, and kills the one of its processes that victim chooses, after
// a random time. The machine must have the processes and mounts then that it had before, and the
// program must still work, and say nothing.
func (m *machine) killed(before []string, mounts string, begin func() *exec.Cmd, random *rand.Rand,
	victim func(i int, fresh []string) string) {
	m.t.Helper()
	began := time.Now()
	if out, err := begin().CombinedOutput(); err != nil {
		m.t.Fatalf("%v: %s", err, out)
	}
	took := time.Since(began)
	const times = 24
	for i := range times {
		cmd := begin()
		if err := cmd.Start(); err != nil {
			m.t.Fatal(err)
		}
		time.Sleep(took * time.Duration(random.IntN(times)) / times)
		if fresh := m.fresh(before); len(fresh) > 0 {
			_ = m.command("kill", "-KILL", victim(i, fresh)).Run() // it may have ended
		}
		_ = cmd.Wait()
		testwait.Until(m.t, patience, "its processes have ended", func() bool {
			return slices.Equal(m.processes(), before)
		})
	}
	for line := range strings.Lines(changed(mounts, m.mounts())) {
		if strings.HasPrefix(line, "+") { // others on this machine may end theirs
			m.t.Errorf("a mount is left: %s", line)
		}
	}
	var out []byte
	testwait.Until(m.t, patience, "the kernel has removed the namespaces", func() bool {
		var err error
		out, err = begin().CombinedOutput()
		return err == nil
	})
	if len(out) > 0 {
		m.t.Errorf("the copy says %s", out)
	}
}

// fresh returns the machine's processes that are not in old.
func (m *machine) fresh(old []string) []string {
	return slices.DeleteFunc(m.processes(), func(p string) bool { return slices.Contains(old, p) })
}

// TestKilledInJail kills processes of toll and of the jail while a command is tried, on a machine
// on which the jail mounts several file systems. No process, mount or namespace may be left, and no
// file system may be in use.
func TestKilledInJail(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "namespaces of a machine need root")
	}
	t.Parallel()
	s := situations(t, everything)[0]
	m := start(t, s)
	d := m.dump(s)
	d.save(t, m.file("/run/dump.json.gz"))
	m.sh(`mount -t tmpfs x /opt
mkdir /opt/a /opt/b
mount -t tmpfs x /opt/a
mkdir /opt/a/c
mount -t tmpfs -o noexec x /opt/a/c
mount -t tmpfs x /usr/local
mkdir -p /usr/local/bin /usr/local/d
mount -t tmpfs x /usr/local/d
unshare -Ur sleep infinity &
until [ "$(cat /proc/$!/comm)" = sleep ]; do sleep 0.01; done
nsenter -t $! -U --preserve-credentials sh -c 'echo 4 >/proc/sys/user/max_mnt_namespaces
echo 4 >/proc/sys/user/max_pid_namespaces'
echo $! >/run/limited`)
	before, mounts := m.processes(), m.mounts()
	try := func() *exec.Cmd {
		return m.command("bash", "-c", "exec nsenter -t $(cat /run/limited) -U --preserve-credentials "+
			`"$SELF" jailed /run/dump.json.gz`)
	}
	random := rand.New(rand.NewPCG(3, 4))
	m.killed(before, mounts, try, random, func(_ int, fresh []string) string {
		return fresh[random.IntN(len(fresh))]
	})
	m.sh("umount /usr/local/d /usr/local /opt/a/c /opt/a /opt")
}

// jailed tries a command in a copy of a dump's machine.
func jailed(file string) error {
	ctx := context.Background()
	d := &dump{}
	if err := d.load(file); err != nil {
		return err
	}
	session, err := replica.Start(ctx, d.Machine, d.Sockets)
	if err != nil {
		return err
	}
	defer session.Close()
	out, err := session.Run(ctx, replica.Command{Script: []byte(
		"iptables -I INPUT -j DROP; ls /opt/a/c /usr/local/d; sleep 0.3")})
	if err == nil && out.Code != 0 {
		err = fmt.Errorf("exit code %d: %s", out.Code, out.Text)
	}
	return errors.Join(err, session.Close())
}

func (m *machine) processes() (pids []string) {
	m.t.Helper()
	files, err := filepath.Glob(m.file("/proc/[0-9]*"))
	if err != nil {
		m.t.Fatal(err)
	}
	for _, f := range files {
		if status, err := os.ReadFile(f + "/stat"); err == nil && !bytes.Contains(status, []byte(") Z ")) {
			pids = append(pids, filepath.Base(f))
		}
	}
	slices.SortFunc(pids, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	})
	return pids
}

func (m *machine) mounts() string {
	m.t.Helper()
	b, err := os.ReadFile("/proc/" + m.boot.First() + "/mountinfo")
	if err != nil {
		m.t.Fatal(err)
	}
	return string(b)
}

// judge reads the machine around this process, or a dump, and does all that a copy is made for.
func judge(file string) error {
	ctx := context.Background()
	d := &dump{}
	if file == "" {
		m, err := replica.Read(ctx)
		if err != nil {
			return err
		}
		d.Machine = m
	} else if err := d.load(file); err != nil {
		return err
	}
	if d.Machine == nil {
		return errors.New("no machine")
	}
	session, err := replica.Start(ctx, d.Machine, d.Sockets)
	if err != nil {
		return err
	}
	defer session.Close()
	var dials []replica.Dial
	for space := range d.Machine.Spaces {
		for _, to := range []string{"127.0.0.1:80", "192.0.2.10:80", "10.42.0.7:8000", "10.42.0.7:9",
			"192.0.2.20:80", "192.0.2.77:80", "203.0.113.5:80"} {
			for _, proto := range []string{"tcp", "udp"} {
				dials = append(dials, replica.Dial{Client: replica.Client{Space: space}, Proto: proto,
					To: netip.MustParseAddrPort(to), Explain: true})
			}
		}
	}
	card := replica.Client{Card: "eth0", Source: netip.MustParseAddr("192.0.2.20")}
	dials = append(dials, replica.Dial{Client: card, Proto: "tcp",
		To: netip.MustParseAddrPort("192.0.2.10:443"), Explain: true})
	answers, err := session.Dial(ctx, dials)
	if err != nil {
		return err
	}
	if len(answers) != len(dials) {
		return fmt.Errorf("%d answers to %d dials", len(answers), len(dials))
	}
	scan := replica.Scan{Client: card, To: netip.MustParseAddr("192.0.2.10")}
	if _, err := session.Scan(ctx, scan); err != nil {
		return err
	}
	return session.Close()
}
