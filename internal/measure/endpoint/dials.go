package endpoint

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// dials counts a visit's connections that failed, by cause, as sock.Tally does.
type dials struct {
	refused, noPort atomic.Int64
	last            atomic.Pointer[netip.Addr] // of a name, after which no other is tried
	// passed is the address that the last connection tried first, and that did not answer; nil: it
	// answered.
	passed atomic.Pointer[netip.Addr]
}

func (f *dials) looking(l lookUpFunc) lookUpFunc {
	return func(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
		addrs, took, err := l(ctx, host)
		if len(addrs) > 0 {
			f.last.Store(&addrs[len(addrs)-1])
		}
		return addrs, took, err
	}
}

// isLast reports whether no other address is tried after this one.
func (f *dials) isLast(addr string) bool {
	last := f.last.Load()
	at, err := netip.ParseAddrPort(addr)
	return last == nil || err != nil || at.Addr() == *last
}

func (f *dials) counted(d dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, vantage.Took, error) {
		c, took, err := d(ctx, network, addr)
		if err != nil && !errors.Is(ctx.Err(), context.Canceled) && f.isLast(addr) {
			f.add(err)
		}
		if err == nil {
			f.passed.Store(passedOver(c, took.First))
		}
		return c, took, err
	}
}

// passedOver returns the address that was tried first if the connection is to another one, or nil.
func passedOver(c net.Conn, first netip.Addr) *netip.Addr {
	if !first.IsValid() {
		return nil
	}
	remote, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok || remote.AddrPort().Addr().Unmap() == first.Unmap() {
		return nil
	}
	return &first
}

// unanswered returns the address that the last connection passed over, or "".
func (f *dials) unanswered() string {
	if a := f.passed.Load(); a != nil {
		return a.String()
	}
	return ""
}

func (f *dials) add(err error) {
	var name *net.DNSError
	var dialled net.Error
	switch {
	case errors.As(err, &name):
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		f.noPort.Add(1)
	case errors.As(err, &dialled) && dialled.Timeout(), errors.Is(err, syscall.ECONNREFUSED),
		errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		f.refused.Add(1)
	}
}

func (f *dials) begin() {
	f.refused.Store(0)
	f.noPort.Store(0)
}

// note records the counts in v, also if the visit has failed.
func (f *dials) note(v *sample.Visit) {
	if v.Client.Counts == nil {
		v.Client.Counts = map[string]int64{}
	}
	v.Client.Counts[workload.CountRefused], v.Client.Counts[workload.CountNoPort] = f.refused.Load(), f.noPort.Load()
}
