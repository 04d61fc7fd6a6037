package endpoint

import (
	"maps"
	"net/netip"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
)

func TestNoteDevices(t *testing.T) {
	client, server := netnstest.New(t), netnstest.New(t)
	tid, err := server.TID()
	if err != nil {
		t.Fatal(err)
	}
	facts := map[string]string{}
	err = client.Do(func() error {
		if err := link.AddVeth("near", "far", tid); err != nil {
			return err
		}
		if err := link.AddAddr("near", netip.MustParsePrefix("192.0.2.1/24")); err != nil {
			return err
		}
		if err := link.Up("near"); err != nil {
			return err
		}
		return link.SetOffload("near", link.TSO, false)
	})
	if err == nil {
		err = server.Do(func() error {
			if err := link.AddAddr("far", netip.MustParsePrefix("192.0.2.2/24")); err != nil {
				return err
			}
			if err := link.Up("far"); err != nil {
				return err
			}
			return link.SetOffload("far", link.GRO, true)
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Do(func() error {
		noteDevices("192.0.2.2:80", vantage.Local(), Server{PID: tid}, facts)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{sample.FactDevice: "near", sample.FactOffloadsOff: "gro, tso",
		sample.FactServerDevice: "far"} // a veth has no GRO unless it is switched on
	if !maps.Equal(facts, want) {
		t.Errorf("%q, want %q", facts, want)
	}
	facts = map[string]string{}
	if noteDevices("/run/socket", vantage.Local(), Server{}, facts); len(facts) > 0 {
		t.Errorf("a Unix socket has %q", facts)
	}
}
