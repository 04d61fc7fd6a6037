package docker

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
)

func TestCleanRoutes(t *testing.T) {
	ns := netnstest.New(t)
	via := netip.MustParseAddr("192.0.2.2")
	ours := link.Laid{To: netip.MustParsePrefix("198.18.4.0/22"), Via: via}
	there := link.Laid{To: netip.MustParsePrefix("203.0.113.2/32"), Device: "card"}
	users := link.Laid{To: netip.MustParsePrefix("198.51.100.0/24"), Via: via}
	err := ns.Do(func() error {
		return errors.Join(link.AddBridge("card"),
			link.AddAddr("card", netip.MustParsePrefix("192.0.2.1/24")), ours.Lay(),
			there.Lay(), link.AddRoute(users.To, via))
	})
	if err != nil {
		t.Fatal(err)
	}
	var made []dockerapi.Entry
	for _, name := range []string{dockerapi.RouteName(ours), dockerapi.RouteName(users),
		dockerapi.RouteName(there), "203.0.113.3/32 dev nowhere",
		"198.18.8.0/22 192.0.2.2", "nonsense", "198.18.4.1/22 192.0.2.2"} {
		made = append(made, dockerapi.Entry{Kind: dockerapi.Route, Name: name})
	}
	c := machineCleaner{ns: ns, here: []dockerapi.Orphan{{Made: made}}, still: map[string]bool{}}
	c.routes()
	if err := errors.Join(c.errs...); err != nil ||
		!slices.Equal(c.removed, []string{"route 198.18.4.0/22 192.0.2.2",
			"route 203.0.113.2/32 dev card"}) {
		t.Errorf("removed %q, %v", c.removed, err)
	}
	var left []netip.Prefix
	if err := ns.Do(func() (err error) { left, err = link.Used(); return err }); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(left, ours.To) || slices.Contains(left, there.To) ||
		!slices.Contains(left, users.To) {
		t.Errorf("left: %v", left)
	}
}
