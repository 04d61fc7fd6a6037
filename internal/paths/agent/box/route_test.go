package box

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

func TestRoutes(t *testing.T) {
	ns := netnstest.New(t)
	via, via6 := netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("2001:db8::2")
	four := link.Laid{To: netip.MustParsePrefix("198.18.4.0/22"), Via: via}
	six := link.Laid{To: netip.MustParsePrefix("fd00:1::/64"), Via: via6}
	own := link.Laid{To: netip.MustParsePrefix("198.51.100.0/24"), Via: via}
	within := link.Laid{To: netip.MustParsePrefix("198.51.100.128/25"), Via: via}
	there := link.Laid{To: netip.MustParsePrefix("203.0.113.2/32"), Device: "card"}
	there6 := link.Laid{To: netip.MustParsePrefix("fd00:2::2/128"), Device: "card"}
	gone := link.Laid{To: there.To, Device: "nowhere"}
	err := ns.Do(func() error {
		return errors.Join(link.AddBridge("card"),
			link.AddAddr("card", netip.MustParsePrefix("192.0.2.1/24")),
			link.AddAddr("card", netip.MustParsePrefix("2001:db8::1/64")),
			link.AddRoute(own.To, via))
	})
	if err != nil {
		t.Fatal(err)
	}
	routes := func() (all string) {
		t.Helper()
		err := ns.Do(func() error {
			got, err := link.Routes()
			for _, r := range got {
				all += r.Text + "\n"
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := routes()
	dir := filepath.Join(t.TempDir(), "state", "bridgetoll")
	e := &Engine{StateDir: dir}
	err = ns.Do(func() error {
		for _, taken := range []link.Laid{own, within} {
			if err := e.Lay(taken); !errors.Is(err, link.ErrTaken) ||
				!errors.Is(err, machine.ErrUnsupported) {
				t.Errorf("%v: %v", taken, err)
			}
			if err := e.Lift(taken); err != nil {
				t.Error(err)
			}
		}
		return errors.Join(e.Lay(four), e.Lay(six), e.Lay(there), e.Lay(there6),
			e.Lift(link.Laid{To: four.To, Via: via6}))
	})
	if err != nil {
		t.Fatal(err)
	}
	during := routes()
	for _, want := range []string{"198.18.4.0/22 via 192.0.2.2 dev card table 254 type 1",
		"fd00:1::/64 via 2001:db8::2 dev card table 254 metric 1024 type 1",
		"198.51.100.0/24 via 192.0.2.2 dev card table 254 type 1",
		"203.0.113.2/32 dev card table 254 type 1 scope 253",
		"fd00:2::2/128 dev card table 254 metric 1024 type 1"} {
		if !testgolden.HasLine(during, want) {
			t.Errorf("no line %q in %q", want, during)
		}
	}
	journals, _ := filepath.Glob(dir + "/*")
	if len(journals) != 1 {
		t.Fatalf("journals %q", journals)
	}
	text, err := os.ReadFile(journals[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"route 198.18.4.0/22 192.0.2.2", "route 203.0.113.2/32 dev card"} {
		if !testgolden.HasLine(string(text), want) {
			t.Errorf("no line %q in %q", want, text)
		}
	}
	err = ns.Do(func() error {
		for _, l := range []link.Laid{own, gone} {
			if was, err := l.Lift(); was || err != nil {
				t.Errorf("%v was taken for toll's: %v, %v", l, was, err)
			}
		}
		return errors.Join(e.Lift(four), e.Close(), e.Close())
	})
	if err != nil {
		t.Error(err)
	}
	if after := routes(); after != before {
		t.Errorf("routes are\n%swere\n%s", after, before)
	}
	if _, err := os.Stat(filepath.Dir(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directories of the journal are left: %v", err)
	}
	if err := e.Lay(four); !errors.Is(err, errClosed) {
		t.Errorf("after the end: %v", err)
	}
}
