package build

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// lure is what a machine has that a command in the jail must not reach.
type lure struct {
	Dir     string // the current directory, with the probes' program, a socket and a pipe
	Victim  int    // a process of the same user
	Machine *replica.Machine
}

func newLure(t *testing.T, s *site, user int) *lure {
	dir, err := os.MkdirTemp("", "jail")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l := &lure{Dir: dir, Machine: s.machine()}
	for i := range l.Machine.Spaces {
		l.Machine.Spaces[i].PID = 20000 + i
		l.Machine.Spaces[i].Names = []string{fmt.Sprint("box", i)}
	}
	program, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	to, err := os.OpenFile(dir+"/probe", os.O_CREATE|os.O_WRONLY, 0o755)
	if err == nil {
		_, err = io.Copy(to, program)
		err = errors.Join(err, to.Close())
	}
	if err == nil {
		err = unix.Mkfifo(dir+"/pipe", 0o666)
	}
	for _, f := range []string{dir, dir + "/pipe", dir + "/probe"} {
		err = errors.Join(err, os.Chmod(f, 0o777), os.Chown(f, user, user))
	}
	if err != nil {
		t.Fatal(err)
	}
	// Anything that arrives is an escape.
	pipe, err := os.OpenFile(dir+"/pipe", os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir + "/socket", "@jail" + filepath.Base(dir)} {
		listener, err := net.Listen("unix", name)
		if err != nil {
			t.Fatal(err)
		}
		if name[0] == '/' {
			err = os.Chmod(name, 0o777)
		}
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				t.Errorf("a command reached %s", name)
				c.Close()
			}
		}()
		t.Cleanup(func() { listener.Close() })
	}
	t.Cleanup(func() {
		b := make([]byte, 10)
		if n, _ := syscall.Read(int(pipe.Fd()), b); n > 0 {
			t.Errorf("a command wrote %q to a pipe", b[:n])
		}
		pipe.Close()
	})
	victim, err := self("TestVictim", nil)
	if err != nil {
		t.Fatal(err)
	}
	victim.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	l.Victim = victim.Process.Pid
	t.Cleanup(func() {
		if err := victim.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("a command ended a process of the machine: %v", err)
		}
		_ = victim.Process.Kill()
		_ = victim.Wait()
	})
	return l
}

func TestVictim(t *testing.T) {
	if os.Getenv(asUser) == "" {
		t.Skip("a process for TestJail")
	}
	time.Sleep(10 * time.Minute)
}

// probes lists attempts and what they print. A word in capitals is the error's name.
func (l *lure) probes() []struct{ script, want string } {
	flag := func(n int) string { return fmt.Sprintf("%#x", n) }
	victim := strconv.Itoa(l.Victim)
	etc := "done" // in the jail only
	if os.Geteuid() != 0 {
		etc = "EACCES"
	}
	abstract := "@jail" + filepath.Base(l.Dir)
	return []struct{ script, want string }{
		{"./probe probe write /usr/x x", "EROFS"},
		{"./probe probe write /opt/x x", "EROFS"},
		{"./probe probe write /usr/bin/env x", "EROFS"},
		{"./probe probe write /proc/sys/kernel/core_pattern '|/tmp/x'", "EROFS"},
		{"./probe probe write /proc/sys/vm/swappiness 1", "EROFS"},
		{"./probe probe write /proc/sys/kernel/pid_max 400", "EROFS"},
		{"./probe probe write /proc/sys/net/netfilter/nf_hooks_lwtunnel 1", "EROFS|ENOENT"},
		{"./probe probe write /proc/sysrq-trigger s", "EROFS|ENOENT"},
		{"./probe probe write /proc/self/oom_score_adj 0", "EROFS"},
		{"./probe probe write /sys/kernel/mm/transparent_hugepage/enabled never", "EROFS|ENOENT"},
		{"./probe probe write /sys/fs/cgroup/cgroup.procs 1", "EROFS|ENOENT"},
		{"./probe probe write /etc/hosts x", etc},
		{"for f in /dev/null /dev/random /usr /bin/sh /proc/20000/exe /sys/class/net " +
			"/sys/devices/virtual/net /sys/devices/virtual; do ./probe probe chmod $f; " +
			"./probe probe chown $f; ./probe probe touch $f; done | sort -u", "EROFS"},
		{"ls -A / | grep '^\\.'", ""},
		{"./probe probe chmod /proc/sys/net/ipv4/ip_forward", "EPERM"},
		{"echo x >/dev/null && head -c 1 /dev/zero | od -An -tx1", "00"},
		{"readlink /proc/20000/exe /proc/20000/cwd /proc/20000/root; readlink -f /bin/sh",
			"/usr/bin/dash / / /usr/bin/dash"},
		{"echo 1 >/sys/class/net/docker0/bridge/multicast_snooping && echo done", "done"},
		{"./probe probe write x x && cat x", "done x"},
		{"./probe probe write /tmp/x x && cat /tmp/x", "done x"},
		{"head -c 100000000 /dev/zero >/tmp/big; rm -f /tmp/big; [ -e /tmp/big ] || echo gone",
			"head: error writing 'standard output': File too large gone|" +
				"head: error writing 'standard output': No space left on device gone"},
		{"for i in 1 2 3; do head -c 40000000 /dev/zero >/tmp/big$i || break; done 2>&1; rm /tmp/big*",
			"head: error writing 'standard output': No space left on device"},
		{"hostname jailed && hostname", "jailed"},
		{"./probe probe connect unix " + l.Dir + "/socket", "EAFNOSUPPORT"},
		{"./probe probe connect unix socket", "EAFNOSUPPORT"},
		{"./probe probe connect unix " + abstract, "EAFNOSUPPORT"},
		{"./probe probe socket " + strconv.Itoa(unix.AF_VSOCK), "EAFNOSUPPORT"},
		{"./probe probe socket " + strconv.Itoa(unix.AF_BLUETOOTH), "EAFNOSUPPORT"},
		{"./probe probe socket " + strconv.Itoa(unix.AF_ALG), "EAFNOSUPPORT"},
		{"./probe probe socket " + strconv.Itoa(unix.AF_XDP), "EAFNOSUPPORT"},
		{"./probe probe force " + strconv.Itoa(unix.AF_INET), "EPERM|EPROTONOSUPPORT"},
		{"./probe probe force " + strconv.Itoa(unix.AF_PACKET), "EPERM"},
		{"./probe probe force " + strconv.Itoa(unix.AF_NETLINK), "EPERM"},
		{"./probe probe fifo pipe", "ENXIO"},
		{"./probe probe kill " + victim, "ESRCH"},
		{"./probe probe kill 1; echo here", "done here"},
		{"kill -TERM 1; kill -INT 1; kill -QUIT 1; kill -HUP 1; sleep 0.1; echo here", "here"},
		{"./probe probe mount", "EPERM"},
		{"./probe probe remount", "EPERM"},
		{"./probe probe umount", "EPERM"},
		{"./probe probe fsopen", "EPERM"},
		{"./probe probe opentree", "EPERM"},
		{"./probe probe pivot", "EPERM"},
		{"./probe probe chroot", "EPERM"},
		{"./probe probe unshare " + flag(unix.CLONE_NEWNS), "EPERM"},
		{"./probe probe unshare " + flag(unix.CLONE_NEWUSER), "EPERM"},
		{"./probe probe clone " + flag(unix.CLONE_NEWUSER), "EPERM"},
		{"./probe probe clone " + flag(unix.CLONE_NEWNS), "EPERM"},
		{"./probe probe clone3", "ENOSYS"},
		{"./probe probe newcall", "ENOSYS"},
		{"./probe probe setns /proc/self/ns/mnt " + flag(unix.CLONE_NEWNS), "EPERM"},
		{"./probe probe setns /proc/self/ns/user 0", "EPERM"},
		{"./probe probe setns /proc/self/ns/net 0", "EPERM"},
		{"./probe probe bpf", "EPERM"},
		{"./probe probe iouring", "EPERM"},
		{"./probe probe ptrace 1", "EPERM"},
		{"./probe probe readv 1", "EPERM"},
		{"./probe probe getfd", "EPERM"},
		{"./probe probe handle", "EPERM"},
		{"./probe probe reboot", "EPERM"},
		{"./probe probe clock", "EPERM"},
		{"./probe probe adjtime", "EPERM"},
		{"./probe probe syslog", "EPERM"},
		{"./probe probe module", "EPERM"},
		{"./probe probe kexec", "EPERM"},
		{"./probe probe keyctl", "EPERM"},
		{"./probe probe perf", "EPERM"},
		{"./probe probe fault", "EPERM"},
		{"./probe probe fanotify", "EPERM"},
		{"./probe probe mknod", "EPERM"},
		{"./probe probe open /proc/1/root", "EACCES"},
		{"./probe probe open /proc/1/mem", "EACCES"},
		{"./probe probe open /proc/1/environ", "EACCES"},
		{"./probe probe open /proc/1/fd/3", "EACCES"},
		{"for t in /proc/1/task/*; do ./probe probe open $t/mem; done | sort -u", "EACCES"},
		{"./probe probe open /proc/kcore", "EROFS|EPERM|ENOENT|EACCES"},
		{"ls /dev /run /home /root /var/lib | grep -vE '^(fd|full|null|random|shm|std.*|urandom|zero|" +
			"lock|netns|toll|/.*:|)$'", ""},
		{"ls -d /proc/[0-9]* | grep -c '/2000[0-9]$'", strconv.Itoa(len(l.Machine.Spaces))},
		{"env | cut -d= -f1 | sort | tr '\\n' ' '", "HOME LC_ALL LOGNAME OLDPWD PATH PWD RES_OPTIONS TERM USER|" +
			"HOME LC_ALL LOGNAME PATH PWD RES_OPTIONS TERM USER"},
		{"ls /proc/self/fd", "0 1 2 3"},
		{"grep -E '^(CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status | tr '\\t' ' '",
			"CapPrm: 0000000000203000 CapEff: 0000000000203000 CapBnd: 0000000000203000 " +
				"CapAmb: 0000000000000000 NoNewPrivs: 1 Seccomp: 2"},
		{"grep -E '^(CapPrm|CapInh|NoNewPrivs|Seccomp):' /proc/20000/status | tr '\\t' ' '; " +
			"ls /proc/20000/fd",
			"CapInh: 0000000000000000 CapPrm: 0000000000000000 NoNewPrivs: 1 Seccomp: 2"},
		{"ip link set eth0 netns 1 && ip -br link show eth0 | cut -c1-4", "eth0"},
		{"nsenter -t 20001 -n ip -br -4 addr show eth0 | tr -s ' '",
			"eth0@" + l.link() + " UP 172.17.0.2/16"},
		{"ip -n box2 -br -4 addr show eth0 | tr -s ' '", "eth0@" + l.port() + " UP 172.17.0.3/16"},
		{"sudo -n ip -4 -n box0 addr show docker0 | grep -o 172.17.0.1/16", "172.17.0.1/16"},
		{"ip netns exec box1 sysctl -w net.ipv4.ip_forward=1", "net.ipv4.ip_forward = 1"},
	}
}

// link returns the name of the other end of container 1's eth0 as the container shows it.
func (l *lure) link() string { return l.end(1) }
func (l *lure) port() string { return l.end(2) }

func (l *lure) end(space int) string {
	for _, x := range l.Machine.Spaces[space].Links {
		if x.Name == "eth0" {
			return fmt.Sprint("if", x.Parent)
		}
	}
	return ""
}

// try makes all attempts in copies of the machine.
func (l *lure) try(t *testing.T) {
	t.Chdir(l.Dir)
	s := &site{t: t}
	r := s.start(l.Machine, socket(0, "0.0.0.0:9000"))
	// Each program of a race build would end a second late.
	atOnce := strings.NewReplacer("./probe ", "GORACE=atexit_sleep_ms=0 ./probe ")
	for _, p := range l.probes() {
		out := s.run(r, 0, atOnce.Replace(p.script))
		got := strings.Join(strings.Fields(out.Text), " ")
		ok := false
		for want := range strings.SplitSeq(p.want, "|") {
			ok = ok || got == want
		}
		if !ok {
			t.Errorf("%s\n\tprinted %q\n\twant    %q", p.script, got, p.want)
		}
	}
	endless, cut := "yes", "cut"
	if os.Geteuid() != 0 {
		endless, cut = "sleep 61", ""
	}
	for _, p := range []struct {
		script string
		code   int
		rest   string
	}{
		{"kill -9 -1; while [ -d /proc/20000 ]; do :; done; exit 5", 5, ""},
		{endless, 124, cut},
	} {
		out := s.run(r, 0, p.script)
		if out.Code != p.code || out.TimedOut != (p.code == 124) || out.Cut != (p.rest == "cut") ||
			out.Cut && len(out.Text) != 64<<10 {
			t.Errorf("%s: %d, %d bytes, %t %t %.200s", p.script, out.Code, len(out.Text), out.Cut,
				out.TimedOut, out.Text)
		}
	}
	forks := "cd /tmp && mkfifo f; n=0; " +
		"while [ $n -lt 5000 ]; do (read x <f) & n=$((n+1)); done; echo all"
	if limitsForks() { // else they would all run on the machine
		if out := s.run(r, 0, forks); !forkRefused.MatchString(out.Text) {
			t.Errorf("%s: %+v", forks, out)
		}
	}
	if out := s.run(r, 0, "(setsid sleep 1000; :) & echo here"); out.Text != "here\n" {
		t.Errorf("%+v", out)
	}
	for _, ruin := range []string{
		"./probe probe settings",
		"nft flush ruleset; iptables -P INPUT DROP; iptables -t nat -F; ip rule add pref 1 blackhole",
		"sysctl -qw net.ipv4.ip_forward=0 net.ipv4.conf.all.rp_filter=1; ipset create x hash:ip; " +
			"conntrack -F; nsenter -t 20001 -n ip link del eth0; ip link del docker0; " +
			"ip addr flush dev eth0; ip route flush table main; ip link del eth0",
		"./probe probe send 192.0.2.20:9; ip link set eth0 down",
	} {
		s.run(r, 0, ruin)
	}
	a := s.dial(r, replica.Client{Card: "eth0"}, "192.0.2.10:9000")
	if a.Outcomes[0].Got == replica.Connected {
		t.Errorf("the commands changed nothing: %+v", a)
	}
}

// forkRefused matches what dash or bash say if the kernel permits no further process.
var forkRefused = regexp.MustCompile(`Cannot fork|fork: `)

// limitsForks reports whether the jail can limit the number of processes: of the machine's root
// only where a PID namespace has a pid_max of its own, since Linux 6.14.
func limitsForks() bool {
	var major, minor int
	b, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	_, err := fmt.Sscanf(string(b), "%d.%d", &major, &minor)
	return os.Geteuid() != 0 || err == nil && (major > 6 || major == 6 && minor >= 14)
}

// state returns what a command might change on the machine.
func (l *lure) state(s *site) map[string]string {
	out := map[string]string{}
	for i, ns := range append(s.spaces[:len(s.spaces):len(s.spaces)], s.other) {
		for _, command := range []string{"ip -o link", "ip -o addr", "ip route show table all", "ip rule",
			"nft list ruleset"} {
			out[fmt.Sprint(i, " ", command)] = s.in(ns, command)
		}
		if err := ns.Do(func() error {
			parameters(out, strconv.Itoa(i), "/proc/sys/net")
			return nil
		}); err != nil {
			s.t.Fatal(err)
		}
	}
	modes(out)
	parameters(out, "machine", "/proc/sys/net")
	parameters(out, "machine", "/proc/sys/vm")
	for _, f := range []string{"kernel/core_pattern", "kernel/hostname", "kernel/pid_max",
		"kernel/modprobe"} {
		parameters(out, "machine", "/proc/sys/"+f)
	}
	for _, dir := range []string{"/etc", l.Dir} {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if b, err := os.ReadFile(path); err == nil {
					out[path] = fmt.Sprintf("%x", sha256.Sum256(b))
				}
			} else if err == nil {
				out[path] = d.Type().String()
			}
			return nil
		})
	}
	return out
}

// modes returns the owners and modes of what a command in the jail may see of the machine.
func modes(out map[string]string) {
	for _, f := range []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
		"/sys/devices/virtual", "/sys/devices/virtual/net", "/sys/class/net", "/usr", "/usr/bin/env",
		"/bin/sh", "/proc/self/exe"} {
		var st unix.Stat_t
		if err := unix.Stat(f, &st); err == nil {
			out["mode "+f] = fmt.Sprint(st.Mode, st.Uid, st.Gid, st.Mtim)
			if st.Mode&unix.S_IFMT == unix.S_IFCHR {
				out["mode "+f] = fmt.Sprint(st.Mode, st.Uid, st.Gid)
			}
		}
	}
}

func parameters(out map[string]string, where, dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.HasSuffix(path, "/nf_conntrack_count") &&
			!strings.HasSuffix(path, "/dirty_background_bytes") {
			b, _ := os.ReadFile(path)
			out[where+" "+path] = string(b)
		}
		return nil
	})
}

func (s *site) received(ns *netns.NS) string {
	fields := strings.Fields(s.in(ns, "grep eth0 /proc/thread-self/net/dev"))
	return fields[2]
}

func testJail(t *testing.T, user int, try func(t *testing.T, l *lure)) {
	if os.Geteuid() != 0 {
		t.Skip("compares the state of a machine as root")
	}
	s := newSite(t, "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
	s.in(s.spaces[0], "iptables -A INPUT -p tcp --dport 9999 -j DROP")
	s.in(s.spaces[0], "iptables -t nat -A PREROUTING -p tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80")
	l := newLure(t, s, user)
	before, packets := l.state(s), s.received(s.other)
	try(t, l)
	if diff := cmp.Diff(before, l.state(s)); diff != "" {
		t.Errorf("the machine changed:\n%s", diff)
	}
	if after := s.received(s.other); after != packets {
		t.Errorf("the other machine received %s packets, then %s", packets, after)
	}
	if err := s.spaces[0].Do(func() error {
		return attempts["send"]([]string{"192.0.2.20:9"})
	}); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, time.Minute, "the other machine counts a packet", func() bool {
		return s.received(s.other) != packets
	})
}

// A command reaches nothing but the copy.
func TestJail(t *testing.T) {
	testJail(t, 0, func(t *testing.T, l *lure) { l.try(t) })
}

// A user without privileges tries commands in the copy of another machine.
func TestJailOfUser(t *testing.T) {
	if os.Getenv(asUser) != "" {
		var l lure
		if err := json.NewDecoder(os.Stdin).Decode(&l); err != nil {
			t.Fatal(err)
		}
		l.try(t)
		return
	}
	const nobody = 65534
	testJail(t, nobody, func(t *testing.T, l *lure) {
		cmd, err := self("TestJailOfUser", l)
		if err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		if out, err := cmd.CombinedOutput(); err != nil || !testgolden.HasLine(string(out), "PASS") {
			t.Errorf("%v:\n%s", err, out)
		}
	})
}
