package sysctl

import (
	"errors"
	"maps"
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

func TestWriteAll(t *testing.T) {
	const key = "net/ipv4/conf/lo/forwarding"
	err := netnstest.New(t).Do(func() error {
		for _, value := range []string{"1", "0"} {
			WriteAll(map[string]string{key: value, "net/ipv4/conf/none/forwarding": value})
			if got := ReadAll([]string{"lo"})[key]; got != value {
				t.Errorf("%s is %s, not %s", key, got, value)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What does not spread must be all that changes when it is set.
func TestSpreads(t *testing.T) {
	err := netnstest.New(t).Do(func() error {
		before := ReadAll([]string{"lo"})
		for key, value := range before {
			if Spreads(key) || value != "0" || setFile(key, "1") != nil {
				continue
			}
			want := maps.Clone(before)
			want[key] = "1"
			if diff := cmp.Diff(want, ReadAll([]string{"lo"})); diff != "" {
				t.Errorf("%s changes others:\n%s", key, diff)
			}
			if err := setFile(key, value); err != nil {
				return err
			}
		}
		for _, key := range []string{"net/ipv4/ip_forward", "net/ipv4/conf/all/forwarding"} {
			if !Spreads(key) {
				t.Errorf("%s does not spread", key)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
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

func TestAsNew(t *testing.T) {
	for key, want := range map[string]string{
		"net/ipv4/ip_forward":             "net/ipv4/ip_forward",
		"net/ipv4/conf/all/rp_filter":     "net/ipv4/conf/all/rp_filter",
		"net/ipv4/conf/default/rp_filter": "net/ipv4/conf/default/rp_filter",
		"net/ipv4/conf/eth0.5/rp_filter":  "net/ipv4/conf/default/rp_filter",
		"net/ipv6/conf/lo/disable_ipv6":   "net/ipv6/conf/default/disable_ipv6",
	} {
		if got := AsNew(key); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}
