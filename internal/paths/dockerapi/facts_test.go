package dockerapi

import (
	"testing"

	"github.com/moby/moby/api/types/system"
)

// New engines omit the setting if it is off.
func TestUserlandProxy(t *testing.T) {
	said := &system.FirewallInfo{Driver: "iptables",
		Info: [][2]string{{"ReloadedAt", "x"}, {"EnableUserlandProxy", "true"}}}
	for _, c := range []struct {
		version string
		backend *system.FirewallInfo
		want    string
	}{
		{"29.5.1", said, "true"},
		{"29.5.0-rc.1", &system.FirewallInfo{Driver: "nftables"}, "false"},
		{"30.0.0", &system.FirewallInfo{Driver: "nftables"}, "false"},
		{"29.4.9", &system.FirewallInfo{Driver: "nftables"}, ""},
		{"20.10.24", nil, ""},
		{"dev", &system.FirewallInfo{}, ""},
	} {
		if got := UserlandProxy(system.Info{ServerVersion: c.version, FirewallBackend: c.backend}); got != c.want {
			t.Errorf("%s: %q, want %q", c.version, got, c.want)
		}
	}
}
