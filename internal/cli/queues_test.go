package cli

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// fillQueue listens at an address, and connects until requests to connect are dropped.
func fillQueue(t *testing.T, at *unix.SockaddrInet6) {
	t.Helper()
	socket := func() int {
		fd, err := unix.Socket(unix.AF_INET6,
			unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		return fd
	}
	l := socket()
	if err := errors.Join(unix.Bind(l, at), unix.Listen(l, 0)); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		_ = unix.Connect(socket(), at) // in progress
	}
}

// The first address of a name is that of a server whose listen queue is full, and does not answer.
func TestStreamNamesAddressThatHangs(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "another file of names needs root")
	}
	m := startLLM(t, nil)
	four := netip.MustParseAddrPort(m.Listener.Addr().String())
	six := netip.AddrPortFrom(netip.IPv6Loopback(), four.Port())
	fillQueue(t, &unix.SockaddrInet6{Addr: six.Addr().As16(), Port: int(six.Port())})
	hosts := filepath.Join(openDir(t), "hosts")
	err := os.WriteFile(hosts, []byte("127.0.0.1 localhost\n::1 svc\n127.0.0.1 svc\n"), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	r := startToll(t, "unshare", nil, "-m", "bash", "-c",
		`mount --bind "$1" /etc/hosts && shift && exec "$@"`, "-", hosts, binary(t), "stream",
		fmt.Sprintf("name=http://svc:%d", six.Port()), "four="+m.URL, "--baseline", "four",
		"--rounds", "3", "--tokens", "8", "--quiet")
	if code, _ := r.wait(t, 2*patience); code != exitOK {
		t.Fatalf("exit code %d\n%s\n%s", code, r.errOut.String(), r.out.String())
	}
	said := strings.Join(strings.Fields(r.out.String()), " ")
	if !regexp.MustCompile(`name: connecting takes \S+ m?s, because the first address of its name, ` +
		`::1, does not answer`).MatchString(said) {
		t.Errorf("no word of ::1 in\n%s", r.out.String())
	}
}
