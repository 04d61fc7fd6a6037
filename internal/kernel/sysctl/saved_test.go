package sysctl

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
)

func TestSetAllIsWhatReadAllRead(t *testing.T) {
	var saved [2]map[string]string
	for i := range saved {
		n := netnstest.New(t)
		err := n.Do(func() error {
			if i > 0 {
				for key, err := range SetAll(saved[0]) {
					t.Errorf("%s: %v", key, err)
				}
				saved[i] = ReadAll([]string{"lo"})
				return nil
			}
			errs := []error{Set("net.ipv4.ip_forward", "1"),
				Set("net.ipv4.conf.all.rp_filter", "2"),
				Set("net.ipv4.conf.all.forwarding", "1"),
				Set("net.ipv4.conf.lo.forwarding", "0"),
				Set("net.ipv4.conf.default.route_localnet", "1"),
				Set("net.ipv4.ip_local_port_range", "40000 40001")}
			saved[i] = ReadAll([]string{"lo"})
			return errors.Join(errs...)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(saved[0]) == 0 {
		t.Error("nothing was read")
	}
	if diff := cmp.Diff(saved[0], saved[1]); diff != "" {
		t.Errorf("-original +copy:\n%s", diff)
	}
}

func TestValid(t *testing.T) {
	for _, x := range []struct {
		key, value string
		want       bool
	}{
		{"net/ipv4/ip_forward", "1", true},
		{"net/ipv4/conf/eth0.100/rp_filter", "2", true},
		{"net/ipv4/conf/eth0/medium_id", "-1", true},
		{"net/ipv4/ip_local_reserved_ports", "80,1000-2000", true},
		{"net/ipv4/ip_forward", "1\n2", false},
		{"net/ipv4/conf/../rp_filter", "1", false},
		{"net/ipv4/conf/./rp_filter", "1", false},
		{"net/ipv4/conf//rp_filter", "1", false},
		{"net/ipv4/conf/a/../rp_filter", "1", false},
		{"net/ipv4/conf/eth0/log_martians", "1", false},
		{"net/ipv4/tcp_mem", "1", false},
		{"kernel/hostname", "1", false},
		{"../../tmp/x", "1", false},
	} {
		if got := Valid(x.key, x.value); got != x.want {
			t.Errorf("Valid(%q, %q) = %t", x.key, x.value, got)
		}
	}
}
