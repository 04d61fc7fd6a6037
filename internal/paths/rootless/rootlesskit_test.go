package rootless

import (
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

func TestKitArgs(t *testing.T) {
	k := Kit{Net: Slirp4netns, Ports: "builtin", MTU: 65520, Published: []Published{
		{netip.MustParseAddrPort("0.0.0.0:8080"), netip.MustParseAddrPort("127.0.0.1:8080")},
		{netip.MustParseAddrPort("[::]:8080"), netip.MustParseAddrPort("[::1]:8080")}}}
	args := k.Args("/usr/bin/rootlesskit")
	for _, want := range []string{"--net=slirp4netns", "--mtu=65520", "--port-driver=builtin",
		"--publish=0.0.0.0:8080:127.0.0.1:8080/tcp4", "--publish=[::]:8080:[::1]:8080/tcp6"} {
		if !slices.Contains(args, want) {
			t.Errorf("%q lacks %q", args, want)
		}
	}
	k.UDP = true
	const want = "--publish=[::]:8080:[::1]:8080/udp6"
	if args := k.Args("/usr/bin/rootlesskit"); !slices.Contains(args, want) {
		t.Errorf("%q lacks %q", args, want)
	}
}

// here is this process's network namespace.
type here struct{}

func (here) Do(f func() error) error { return f() }

func (here) Start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = nil // its namespaces need root
	return cmd.Start()
}

func TestKitStartsAgain(t *testing.T) {
	for _, c := range []struct {
		says  string
		tries int
	}{
		{"nsenter: cannot open /proc/12/ns/net: No such file or directory", mostTries},
		{"failed to setup network", 1},
	} {
		tries := 0
		_, err := Kit{}.Start(here{}, func() (*exec.Cmd, *local.Tail) {
			tries++
			cmd := exec.Command("sh", "-c", `echo "$0" >&2`, c.says)
			return cmd, local.Keep(cmd)
		})
		if err == nil || !testgolden.HasLine(err.Error(), c.says) || tries != c.tries {
			t.Errorf("%q: %d tries, %v", c.says, tries, err)
		}
	}
}

func TestPastaArgs(t *testing.T) {
	for _, c := range []struct {
		ports []Port
		want  string
	}{
		{nil, "-t none -u none"},
		{[]Port{{Host: 8080, Container: 5201}, {Host: 8081, Container: 5202}},
			"-t 8080:5201,8081:5202 -u none"},
		{[]Port{{Host: 8080, Container: 5201, UDP: true}}, "-t none -u 8080:5201"},
	} {
		want := "--config-net " + c.want +
			" -T none -U none --no-map-gw --quiet --foreground --runas 0 " +
			"--netns-only --netns /run/ns"
		if got := strings.Join(PastaArgs("/run/ns", c.ports), " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPortConfig(t *testing.T) {
	r, err := PortConfig([]Port{{Host: 8080, Container: 5201}, {8081, 5202, true}},
		netip.IPv6Unspecified(),
		netip.MustParseAddr("10.89.0.2"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	const want = `{"Mappings":[{"host_ip":"::","container_port":5201,"host_port":8080,"range":1,` +
		`"protocol":"tcp"},` +
		`{"host_ip":"::","container_port":5202,"host_port":8081,"range":1,"protocol":"udp"}],` +
		`"NetNSPath":"/proc/self/fd/5","ExitFD":3,"ReadyFD":4,"TmpDir":"/tmp",` +
		`"ChildIP":"10.89.0.2","RootlessCNI":false}`
	if string(got) != want || err != nil {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

func TestVisible(t *testing.T) {
	in := filepath.Join(t.TempDir(), "program") // in /tmp, unless TMPDIR is set
	if err := os.WriteFile(in, []byte("#!/bin/sh\necho $#\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	got, err := visible(in)
	if err != nil || strings.HasPrefix(in, scratch+"/") != strings.HasPrefix(got, "/proc/self/fd/") {
		t.Errorf("%s: %s, %v", in, got, err)
	}
	if got, err := visible("/bin/sh"); got != "/bin/sh" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}
