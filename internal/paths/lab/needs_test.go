package lab

import (
	"context"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

func TestWhatIsMissingIsNamed(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want string // "": could not tell
	}{
		{"no-bridge", local.MissingDevice(unix.EOPNOTSUPP, "bridge", "CONFIG_BRIDGE"),
			"CONFIG_BRIDGE"},
		{"odd-device", local.MissingDevice(unix.EBUSY, "bridge", "CONFIG_BRIDGE"), ""},
		{"no-privilege", explainNamespace(unix.EPERM), "root or a user namespace"},
		{"too-many", explainNamespace(unix.ENOSPC), "user.max_net_namespaces"},
		{"no-namespaces", explainNamespace(unix.EINVAL), "CONFIG_NET_NS"},
		{"odd-namespace", explainNamespace(unix.EIO), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var u *machine.UnsupportedError
			known := errors.As(c.err, &u)
			if known != (c.want != "") || errors.Is(c.err, machine.ErrUnsupported) != known {
				t.Fatalf("error %v", c.err)
			}
			if known && (!strings.Contains(u.Missing, c.want) || u.Remedy == "" ||
				u.Hint() != u.Remedy) {
				t.Errorf("missing %q, remedy %q", u.Missing, u.Remedy)
			}
		})
	}
}

func TestCongestionThatIsNotThere(t *testing.T) {
	l := started(t, &Lab{Congestion: "teleport"})
	spec := path.Spec{Mode: mode.Native, From: mode.FromHost, To: mode.ToLoopback}
	for range 2 {
		var u *machine.UnsupportedError
		if err := l.Check(context.Background(), spec); !errors.As(err, &u) ||
			!strings.Contains(u.Remedy, "reno") {
			t.Errorf("Check = %v", err)
		}
	}
	if p, err := l.Build(context.Background(), spec); err == nil {
		p.Close()
		t.Error("it was built")
	}
}

func TestKernelOptionsAreNamed(t *testing.T) {
	l := started(t, &Lab{})
	for _, c := range []struct {
		mode   mode.Name
		option string
		remedy string
	}{
		{mode.MacvlanBridge, "CONFIG_MACVLAN", "modprobe macvlan"},
		{mode.IPvlanL2, "CONFIG_IPVLAN", "modprobe ipvlan"},
		{mode.IPvlanL3, "CONFIG_IPVLAN", "modprobe ipvlan"},
		{mode.IPvlanL3S, "CONFIG_IPVLAN", "modprobe ipvlan"},
		{mode.Netkit, "CONFIG_NETKIT", "modprobe netkit"},
		{mode.PublishIngress, "CONFIG_IP_VS", "modprobe -a ip_vs"},
		{mode.Overlay, "CONFIG_VXLAN", "modprobe vxlan"},
		{mode.OverlayEncrypted, "CONFIG_INET_ESP, CONFIG_CRYPTO_GCM", "modprobe -a esp4 gcm"},
	} {
		t.Run(string(c.mode), func(t *testing.T) {
			m, _ := mode.Find(c.mode)
			for _, r := range m.Routes {
				spec := path.Spec{Mode: c.mode, From: r.From, To: r.To}
				err := l.Check(context.Background(), spec)
				if err == nil {
					continue // the conformance suite builds it
				}
				var u *machine.UnsupportedError
				if !errors.As(err, &u) || !strings.Contains(u.Missing, c.option) ||
					!strings.Contains(u.Remedy, c.remedy) {
					t.Errorf("%s: %v", spec, err)
					continue
				}
				if !kernelLacks(u) {
					pathtest.SkipOrFail(
						t,
						"%s is refused, but the kernel's configuration does not say that "+
							"it lacks %s: %v", spec, c.option, err)
				}
			}
		})
	}
}
