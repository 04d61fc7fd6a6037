package rootless

import (
	"io"
	"net/netip"
	"slices"
	"testing"
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
}

func TestPortConfig(t *testing.T) {
	r, err := PortConfig([]Port{{8080, 5201}}, netip.MustParseAddr("10.89.0.2"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	const want = `{"Mappings":[{"container_port":5201,"host_port":8080,"range":1,"protocol":"tcp"}],` +
		`"NetNSPath":"/proc/self/fd/5","ExitFD":3,"ReadyFD":4,"TmpDir":"/tmp",` +
		`"ChildIP":"10.89.0.2","RootlessCNI":false}`
	if string(got) != want || err != nil {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}
