package lab

import (
	"context"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
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
			"the kernel has no bridge devices (CONFIG_BRIDGE)"},
		{"odd-device", local.MissingDevice(unix.EBUSY, "bridge", "CONFIG_BRIDGE"), ""},
		{"no-privilege", explainNamespace(unix.EPERM),
			"making network namespaces needs root or a user namespace"},
		{"too-many", explainNamespace(unix.ENOSPC),
			"no more network namespaces are allowed (user.max_net_namespaces)"},
		{"no-namespaces", explainNamespace(unix.EINVAL),
			"the kernel has no network namespaces (CONFIG_NET_NS)"},
		{"odd-namespace", explainNamespace(unix.EIO), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var u *machine.UnsupportedError
			known := errors.As(c.err, &u)
			if known != (c.want != "") || errors.Is(c.err, machine.ErrUnsupported) != known {
				t.Fatalf("error %v", c.err)
			}
			if known && (u.Missing != c.want || u.Remedy == "" || u.Hint() != u.Remedy) {
				t.Errorf("remedy %q; missing %q, want %q", u.Remedy, u.Missing, c.want)
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
		mode    mode.Name
		missing string
		remedy  string
	}{
		{mode.MacvlanBridge, "the kernel has no macvlan devices (CONFIG_MACVLAN)",
			remedy.ModprobeOr("macvlan")},
		{mode.IPvlanL2, "the kernel has no ipvlan devices (CONFIG_IPVLAN)",
			remedy.ModprobeOr("ipvlan")},
		{mode.IPvlanL3, "the kernel has no ipvlan devices (CONFIG_IPVLAN)",
			remedy.ModprobeOr("ipvlan")},
		{mode.IPvlanL3S, "the kernel has no ipvlan devices (CONFIG_IPVLAN)",
			remedy.ModprobeOr("ipvlan")},
		{mode.Netkit, "the kernel has no netkit devices (CONFIG_NETKIT)",
			remedy.ModprobeOr("netkit")},
		{mode.PublishIngress, "the kernel lacks IPVS or a part of it (CONFIG_IP_VS, " +
			"CONFIG_IP_VS_PROTO_TCP, CONFIG_IP_VS_PROTO_UDP, CONFIG_IP_VS_RR, " +
			"CONFIG_IP_VS_NFCT, CONFIG_NETFILTER_XT_MATCH_IPVS, CONFIG_NFT_COMPAT, " +
			"CONFIG_NFT_REDIR)",
			remedy.ModprobeOr("ip_vs", "ip_vs_rr", "xt_ipvs", "nft_compat", "nft_redir")},
		{mode.Overlay, "the kernel has no vxlan devices (CONFIG_VXLAN)",
			remedy.ModprobeOr("vxlan")},
		{mode.OverlayEncrypted, "the kernel cannot encrypt with ESP and AES-GCM " +
			"(CONFIG_XFRM_USER, CONFIG_INET_ESP, CONFIG_CRYPTO_GCM)",
			remedy.ModprobeOr("esp4", "gcm")},
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
				if !errors.As(err, &u) || u.Missing != c.missing || u.Remedy != c.remedy {
					t.Errorf("%s: %v", spec, err)
					continue
				}
				if !kernelLacks(u) {
					pathtest.SkipOrFail(
						t,
						"%s is refused, but the kernel's configuration does not say that "+
							"it lacks any: %v", spec, err)
				}
			}
		})
	}
}
