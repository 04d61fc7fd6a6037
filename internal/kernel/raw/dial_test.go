package raw_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
)

// A list of many parts, and an error, are those of the library's own sockets.
func TestDial(t *testing.T) {
	const many = 1000 // more than fit into the largest part
	err := netnstest.New(t).Do(func() error {
		for i := range many {
			a := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
			if err := link.AddAddr("lo", netip.PrefixFrom(a, a.BitLen())); err != nil {
				return err
			}
		}
		var lists [2][][]byte
		var refused [2]error
		for i, dial := range []func() (*netlink.Conn, error){
			func() (*netlink.Conn, error) { return netlink.Dial(unix.NETLINK_ROUTE, nil) },
			func() (*netlink.Conn, error) { return raw.Dial(unix.NETLINK_ROUTE) },
		} {
			c, err := dial()
			if err != nil {
				return err
			}
			all, err := c.Execute(netlink.Message{Data: make([]byte, unix.SizeofIfAddrmsg),
				Header: netlink.Header{Type: unix.RTM_GETADDR, Flags: netlink.Request | netlink.Dump}})
			if err != nil {
				return err
			}
			for _, m := range all {
				lists[i] = append(lists[i], m.Data)
			}
			without := make([]byte, unix.SizeofIfAddrmsg) // an address
			without[0] = unix.AF_INET
			_, refused[i] = c.Execute(netlink.Message{Data: without, Header: netlink.Header{
				Type: unix.RTM_NEWADDR, Flags: netlink.Request | netlink.Acknowledge}})
			if err := c.Close(); err != nil {
				return err
			}
		}
		if diff := cmp.Diff(lists[0], lists[1]); diff != "" || len(lists[0]) < many {
			t.Errorf("%d addresses, -theirs +ours:\n%s", len(lists[0]), diff)
		}
		var op *netlink.OpError
		if !errors.Is(refused[1], unix.EINVAL) || !errors.Is(refused[0], unix.EINVAL) ||
			!errors.As(refused[1], &op) || op.Message == "" {
			return fmt.Errorf("refused: %w, not with words as %w", refused[1], refused[0])
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
