package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/lab/relay"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
)

// readyEnv is set for a process that must report on descriptor 3 that it listens.
const readyEnv = "BRIDGETOLL_TEST_READY"

// deviceEnv has the device of the sockets of a server.
const deviceEnv = "DEVICE"

// play runs what a script of a situation starts: by listening of the prelude "-serve NAME
// PROTO/ADDRESS…", "-hang ADDRESS", "-orphan ADDRESS" and a docker-proxy's flags, and "-plain NAME
// PROTO/ADDRESS…" otherwise; and what the tests run in a machine. ours is false for other arguments.
func play(args []string) (ours bool, err error) {
	if len(args) == 0 {
		return false, nil
	}
	switch args[0] {
	case "proxies":
		return true, proxies()
	case "read":
		return true, read()
	case "traps":
		return true, traps()
	case "inherit":
		return true, inherit(args[1], args[2])
	case "-orphan":
		return true, orphan(args[1])
	case "-inherited":
		return true, inherited(args[1])
	case "reports":
		return true, reports(args[1], args[2], args[3:])
	case "tried":
		return true, tried(args[1:])
	case "judge":
		return true, judge(strings.Join(args[1:], ""))
	case "jailed":
		return true, jailed(args[1])
	case "-hang":
		return true, hang(args[1])
	case "-serve":
		return true, serve(args[1], args[2:], record)
	case "-plain":
		return true, serve(args[1], args[2:], func(server) error { return nil })
	case "-proto":
		return true, proxy(args)
	}
	return false, nil
}

func serve(name string, at []string, record func(server) error) error {
	if err := listenAt(name, at); err != nil {
		return err
	}
	for _, a := range at {
		proto, addr, _ := strings.Cut(a, "/")
		s := server{Name: name, Proto: proto, Addr: netip.MustParseAddrPort(addr),
			Device: os.Getenv(deviceEnv)}
		if err := record(s); err != nil {
			return err
		}
	}
	return ready()
}

// listenAt serves PROTO/ADDRESS… of the calling thread's namespace.
func listenAt(name string, at []string) error {
	for _, a := range at {
		proto, addr, _ := strings.Cut(a, "/")
		to, err := netip.ParseAddrPort(addr)
		if err != nil {
			return err
		}
		network := proto // [::] is a socket of both families
		if to.Addr().Is4() {
			network += "4"
		}
		if err := listen(name, network, addr); err != nil {
			return err
		}
	}
	return nil
}

// ready reports on descriptor 3 that this process listens, and waits.
func ready() error {
	if os.Getenv(readyEnv) != "" {
		if _, err := os.NewFile(3, "ready").WriteString("0\n"); err != nil {
			return err
		}
	}
	for { // select without cases is a deadlock where nothing listens
		time.Sleep(time.Hour)
	}
}

func listen(name, network, addr string) error {
	how := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		cerr := c.Control(func(fd uintptr) { err = options(int(fd)) })
		return errors.Join(cerr, err)
	}}
	if strings.HasPrefix(network, "udp") {
		c, err := how.ListenPacket(context.Background(), network, addr)
		if err != nil {
			return err
		}
		go func() {
			b := make([]byte, 100)
			for {
				_, from, err := c.ReadFrom(b)
				if err == nil {
					_, _ = c.WriteTo([]byte(greeting(name, from)), from)
				}
			}
		}()
		return nil
	}
	l, err := how.Listen(context.Background(), network, addr)
	if err != nil {
		return err
	}
	greet(name, l)
	return nil
}

// options sets those options of a socket that scripts request by variables: TRANSPARENT, as TPROXY
// needs it, DEVICE and MARK.
func options(fd int) error {
	if device := os.Getenv(deviceEnv); device != "" {
		return unix.BindToDevice(fd, device)
	}
	if os.Getenv("TRANSPARENT") != "" {
		return unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_TRANSPARENT, 1)
	}
	if mark := os.Getenv("MARK"); mark != "" {
		n, err := strconv.ParseUint(mark, 0, 32)
		if err != nil {
			return err
		}
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, int(n))
	}
	return nil
}

func greet(name string, l net.Listener) {
	go testnet.Accept(l, func(c net.Conn) {
		_, _ = io.WriteString(c, greeting(name, c.RemoteAddr()))
		_ = c.SetReadDeadline(time.Now().Add(patience))
		_, _ = c.Read(make([]byte, 1))
	})
}

// inherit opens a socket, whose port others may share, outside the place of a server and leaves it
// to two processes: sleep, which never serves, and the server in its place. A server of the machine
// has it alone.
func inherit(at, place string) error {
	shared := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		cerr := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		return errors.Join(cerr, err)
	}}
	l, err := shared.Listen(context.Background(), "tcp4", at)
	if err != nil {
		return err
	}
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	idle := exec.Command("sleep", "infinity")
	idle.ExtraFiles, idle.SysProcAttr = []*os.File{f}, &syscall.SysProcAttr{Setsid: true}
	if place != "machine" {
		if err := idle.Start(); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	pid, err := os.ReadFile("/run/places/" + place)
	if err := errors.Join(err, os.Symlink(self, "/run/bin/"+place)); err != nil {
		return err
	}
	cmd := exec.Command("nsenter", "-n", "-t", strings.TrimSpace(string(pid)), "/run/bin/"+place,
		"-inherited", place)
	cmd.ExtraFiles, cmd.SysProcAttr = []*os.File{f}, &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}

// orphan listens with a socket that no process has: it is on its way to another one.
func orphan(at string) error {
	l, err := net.Listen("tcp4", at)
	if err != nil {
		return err
	}
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		err = unix.Sendmsg(pair[0], []byte{0}, unix.UnixRights(int(f.Fd())), nil, 0)
	}
	if err := errors.Join(err, f.Close(), l.Close()); err != nil {
		return err
	}
	return ready()
}

// inherited serves the socket on descriptor 3.
func inherited(name string) error {
	l, err := net.FileListener(os.NewFile(3, "inherited"))
	if err != nil {
		return err
	}
	greet(name, l)
	return ready()
}

func greeting(name string, peer net.Addr) string {
	a := netip.MustParseAddrPort(peer.String()).Addr().Unmap()
	return fmt.Sprintf("%s sees %s\n", name, a.WithZone(""))
}

// proxyServer returns the socket of a docker-proxy with these arguments.
func proxyServer(args []string) (s server, err error) {
	flags := map[string]string{}
	for i := 0; i+1 < len(args); i += 2 {
		flags[args[i]] = args[i+1]
	}
	at := func(side string) netip.AddrPort {
		to, aerr := netip.ParseAddrPort(net.JoinHostPort(flags["-"+side+"-ip"],
			flags["-"+side+"-port"]))
		err = errors.Join(err, aerr)
		return to
	}
	return server{Name: "docker-proxy", Proto: flags["-proto"], Addr: at("host"),
		Relay: at("container")}, err
}

// proxies records the machine's docker-proxies as servers.
func proxies() error {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, f := range files {
		b, _ := os.ReadFile(f) // the process may have ended
		args := strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
		if filepath.Base(args[0]) != "docker-proxy" {
			continue
		}
		s, err := proxyServer(args[1:])
		if err != nil {
			return err
		}
		if err := record(s); err != nil {
			return err
		}
	}
	return nil
}

func proxy(args []string) error {
	s, err := proxyServer(args)
	if err != nil {
		return err
	}
	if err := record(s); err != nil {
		return err
	}
	return relay.Run(context.Background(), args, os.NewFile(3, "ready"))
}

// read writes the machine around this process.
func read() error {
	m, err := replica.Read(context.Background())
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(m)
}

func record(s server) (err error) {
	if s.Space, err = os.Readlink("/proc/self/ns/net"); err != nil {
		return err
	}
	f, err := os.OpenFile("/run/servers", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	return json.NewEncoder(f).Encode(s)
}
