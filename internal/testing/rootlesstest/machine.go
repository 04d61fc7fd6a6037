// Package rootlesstest makes machines on which an ordinary user runs container engines, for tests.
//
// A machine has network, mount and PID namespaces of its own, so nothing of it outlives the test:
// the user exists only in copies of /etc's files that are mounted over them, and only there may the
// user open /dev/net/tun. A process inside sees the machine's processes alone.
package rootlesstest

import (
	"bufio"
	"errors"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// The user, whose group has the same number.
const (
	User = "rootless"
	UID  = 21000
)

// The ends of the machine's wire, over which its default routes lead.
var (
	Address  = netip.MustParsePrefix("198.18.9.2/24")
	Address6 = netip.MustParsePrefix("2001:2:0:9::2/64")
	Beyond   = netip.MustParsePrefix("198.18.9.1/24")
	Beyond6  = netip.MustParsePrefix("2001:2:0:9::1/64")
)

// Machine is a machine that ends with its test.
type Machine struct {
	*pathtest.Machine
	Home    string // the user's, the same path inside and outside
	Runtime string // the user's XDG_RUNTIME_DIR; inside only
	// Beyond is at the other end of the wire, and has Beyond and Beyond6.
	Beyond *netns.NS

	pid  string
	path string // PATH
}

// A fresh sysfs shows the machine's own devices.
const boot = `set -e
user=$1 uid=$2 home=$3
mount -t tmpfs tmpfs /run
mkdir -p /run/lock /run/netns /run/s /run/etc /run/user/$uid
mount -t sysfs sysfs /run/s
mount --rbind /sys/fs/cgroup /run/s/fs/cgroup
mount --rbind /run/s /sys
mknod /run/tun c 10 200
chmod 666 /run/tun
mount --bind /run/tun /dev/net/tun
add() { { cat /etc/$1 2>/dev/null; echo "$2"; } >/run/etc/$1; mount --bind /run/etc/$1 /etc/$1; }
add passwd "$user:x:$uid:$uid::$home:/bin/sh"
add group "$user:x:$uid:"
add subuid "$user:231072:65536"
add subgid "$user:231072:65536"
chown $uid:$uid $home /run/user/$uid
chmod 700 /run/user/$uid
ip link set lo up
until ip link show eth0 >/dev/null 2>&1; do sleep 0.01; done
ip addr add $4 dev eth0
ip addr add $5 dev eth0 nodad
ip link set eth0 up
ip route add default via $6
ip -6 route add default via $7
echo ready
sleep infinity & wait`

// New makes a machine. It skips the test, or fails it under CI=true, if something is missing here.
func New(t testing.TB) *Machine {
	t.Helper()
	pathtest.NeedsDaemons(t, "newuidmap", "setpriv")
	for _, file := range []string{"/dev/net/tun", "/etc/subuid", "/etc/subgid"} {
		if _, err := os.Stat(file); err != nil {
			pathtest.SkipOrFail(t, "%v", err)
		}
	}
	home, err := os.MkdirTemp("", "toll-") // short: Unix sockets are in it
	if err == nil {
		err = os.Chmod(home, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	m := &Machine{Home: home, Runtime: "/run/user/" + strconv.Itoa(UID), path: os.Getenv("PATH")}
	if m.Beyond, err = netns.New(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Beyond.Close() })
	said, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	m.Machine = pathtest.Boot(t, boot, func(cmd *exec.Cmd) { cmd.Stdout, cmd.Stderr = w, w },
		User, strconv.Itoa(UID), home, Address.String(), Address6.String(), Beyond.Addr().String(),
		Beyond6.Addr().String())
	w.Close()
	const patience = time.Minute
	testwait.Until(t, patience, "the machine's first process runs", func() bool {
		m.pid = m.First()
		return m.pid != ""
	})
	if err := m.Beyond.Do(m.lay); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(said)
	line, err := in.ReadString('\n')
	if line != "ready\n" {
		rest, _ := io.ReadAll(in)
		t.Fatalf("the machine did not start: %s%s %v", line, rest, err)
	}
	go func() { _, _ = io.Copy(io.Discard, in) }() // until the machine ends
	return m
}

func (m *Machine) lay() error {
	pid, err := strconv.Atoi(m.pid)
	if err != nil {
		return err
	}
	return errors.Join(link.Up("lo"), link.AddVeth("wire", "eth0", pid),
		link.AddAddr("wire", Beyond), link.AddAddr("wire", Beyond6), link.Up("wire"))
}

// Root returns a command that root runs there.
func (m *Machine) Root(name string, args ...string) *exec.Cmd {
	return exec.Command("nsenter",
		append([]string{"-t", m.pid, "-m", "-n", "-p", name}, args...)...)
}

// Command returns a command that the user runs at home, in an environment like after a login.
func (m *Machine) Command(name string, args ...string) *exec.Cmd {
	login := append(m.login(m.path), name)
	return m.Root(login[0], append(login[1:], args...)...)
}

func (m *Machine) login(path string) []string {
	id := strconv.Itoa(UID)
	return []string{"setpriv", "--reuid", id, "--regid", id, "--clear-groups", "--inh-caps=-all",
		"env", "-i", "-C", m.Home, "HOME=" + m.Home, "USER=" + User, "PATH=" + path,
		"XDG_RUNTIME_DIR=" + m.Runtime, "TMPDIR=" + m.Runtime, "LANG=C.UTF-8"}
}

// Put gives the user a copy of a program in a directory of the PATH, and returns its file.
func (m *Machine) Put(t testing.TB, program string) string {
	t.Helper()
	to := filepath.Join(m.Home, "bin", filepath.Base(program))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("cp", "--reflink=auto", program, to).Run(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(to, 0o755); err != nil {
		t.Fatal(err)
	}
	m.prefer(filepath.Dir(to))
	return to
}

// prefer puts a directory in front of the PATH of later commands.
func (m *Machine) prefer(dir string) {
	if !strings.HasPrefix(m.path+":", dir+":") {
		m.path = dir + ":" + m.path
	}
}

// Output returns what a command of the user's prints. An error ends the test.
func (m *Machine) Output(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := m.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}
