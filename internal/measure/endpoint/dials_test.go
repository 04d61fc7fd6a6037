package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
)

func TestFailedDialsByCause(t *testing.T) {
	for name, tt := range map[string]struct {
		err             error
		cancelled       bool
		refused, noPort int64
	}{
		"connected": {},
		"refused":   {err: fmt.Errorf("dial: %w", syscall.ECONNREFUSED), refused: 1},
		"no answer": {err: &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, refused: 1},
		"no port": {err: &net.OpError{Op: "dial",
			Err: os.NewSyscallError("connect", syscall.EADDRNOTAVAIL)}, noPort: 1},
		"no name":     {err: &net.OpError{Op: "dial", Err: &net.DNSError{IsTimeout: true}}},
		"given up":    {err: syscall.ECONNREFUSED, cancelled: true},
		"not allowed": {err: syscall.EPERM},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		if tt.cancelled {
			cancel()
		}
		var f dials
		dial := f.counted(func(context.Context, string, string) (net.Conn, vantage.Took, error) {
			return nil, vantage.Took{}, tt.err
		})
		_, _, err := dial(ctx, "tcp", "")
		cancel()
		var v sample.Visit
		f.note(&v)
		if n := v.Client.Counts; n[workload.CountRefused] != tt.refused ||
			n[workload.CountNoPort] != tt.noPort || !errors.Is(err, tt.err) {
			t.Errorf("%s: %v, %v", name, n, err)
		}
		if f.begin(); f.refused.Load()+f.noPort.Load() != 0 {
			t.Errorf("%s: the next visit begins with %+v", name, &f)
		}
	}
}

// A name's first address is full, as a listener on ::1 that drops requests to connect.
func TestAddressPassedOver(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for first, want := range map[string]string{"::1": "::1", "127.0.0.1": "", "": ""} {
		var f dials
		dial := f.counted(func(ctx context.Context, network, addr string) (net.Conn, vantage.Took,
			error) {
			a, _ := netip.ParseAddr(first) // the zero address: unknown
			c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			return c, vantage.Took{First: a}, err
		})
		c, _, err := dial(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		if got := f.unanswered(); got != want {
			t.Errorf("%q first: %q, want %q", first, got, want)
		}
	}
}

// An address that refuses is no failure if another is tried.
func TestOnlyTheLastAddressCounts(t *testing.T) {
	addrs := []netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.1")}
	var f dials
	_, _, err := f.looking(func(context.Context, string) ([]netip.Addr, time.Duration, error) {
		return addrs, 0, nil
	})(t.Context(), "localhost")
	if err != nil {
		t.Fatal(err)
	}
	dial := f.counted(func(context.Context, string, string) (net.Conn, vantage.Took, error) {
		return nil, vantage.Took{}, syscall.ECONNREFUSED
	})
	for i, want := range []int64{0, 1} {
		_, _, err := dial(t.Context(), "tcp", netip.AddrPortFrom(addrs[i], 5432).String())
		if n := f.refused.Load(); n != want || err == nil {
			t.Errorf("%s: %d refused, want %d", addrs[i], n, want)
		}
	}
}

func TestDialNamesTheFirstAddress(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, took, err := vantage.Local().Dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if took.First != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("tried %v first", took.First)
	}
}

func TestChatCountsFailedDials(t *testing.T) {
	c, err := newChat([]Address{{Name: "a", URL: "http://" + testnet.TCP(t).String()}},
		openai.Options{Model: "m", Timeout: patience}, nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := visited(t, t.Context(), c, sample.Load{})
	if wants(t, err, "ask http://127.0.0.1:PORT/v1/chat/completions: dial tcp 127.0.0.1:PORT: "+
		"connect: "+
		"connection refused"); v.Client.Counts[workload.CountRefused] != 1 {
		t.Errorf("counts %v", v.Client.Counts)
	}
}
