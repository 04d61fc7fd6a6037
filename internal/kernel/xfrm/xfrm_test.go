package xfrm

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
)

var (
	here  = netip.MustParseAddr("198.18.0.1")
	there = netip.MustParseAddr("198.18.0.2")
	out   = Transform{Src: here, Dst: there, SPI: 0x1234, Reqid: 7, Key: make([]byte, 20)}
)

func TestNone(t *testing.T) {
	netnstest.Do(t, func() error {
		policies, states, err := List()
		if err != nil || len(policies)+len(states) > 0 {
			t.Errorf("%q, %q, %v", policies, states, err)
		}
		for _, to := range []netip.Addr{there, netip.IPv6Loopback()} {
			if sum, err := Between(here, to); !errors.Is(err, ErrNone) || sum != (Count{}) {
				t.Errorf("to %s: %+v, %v", to, sum, err)
			}
		}
		if _, err := Stats(out); err == nil {
			t.Error("a transform that was not added has counters")
		}
		return nil
	})
}

func TestPolicies(t *testing.T) {
	netnstest.Do(t, func() error {
		err := Encrypt(out, 4789, 0xd0c4d3)
		if Unsupported(err) {
			t.Skip(err)
		}
		if err != nil {
			return err
		}
		policies, _, err := List()
		const want = "dir out from 198.18.0.1/32 to 198.18.0.2/32 allow priority 0 (checksum "
		if len(policies) != 1 || !strings.HasPrefix(policies[0], want) {
			t.Errorf("%q, want %q", policies, want)
		}
		return err
	})
}

func TestStates(t *testing.T) {
	netnstest.Do(t, func() error {
		err := Add(out)
		if Unsupported(err) {
			t.Skip(err)
		}
		if err != nil {
			return err
		}
		if got, err := Stats(out); err != nil || got != (Count{}) {
			t.Errorf("new: %+v, %v", got, err)
		}
		if got, err := Between(here, there); err != nil || got != (Count{}) {
			t.Errorf("from here: %+v, %v", got, err)
		}
		if _, err := Between(there, here); !errors.Is(err, ErrNone) {
			t.Errorf("the reverse: %v", err)
		}
		_, states, err := List()
		want := "198.18.0.1 to 198.18.0.2 esp mode transport spi 0x1234 reqid 7"
		if !slices.Equal(states, []string{want}) {
			t.Errorf("%q, want %q", states, want)
		}
		return err
	})
}

func TestUnsupported(t *testing.T) {
	for err, want := range map[error]bool{unix.ENOSYS: true, unix.EPROTONOSUPPORT: true,
		unix.ENOENT: true, unix.EPERM: false, ErrNone: false} {
		if Unsupported(fmt.Errorf("add: %w", err)) != want {
			t.Errorf("%v: %t", err, !want)
		}
	}
}
