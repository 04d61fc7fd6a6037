package link

import (
	"errors"
	"maps"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
)

func TestBridgesNF(t *testing.T) {
	ns := netnstest.New(t)
	var before, after map[string][2]bool
	var gone error
	err := ns.Do(func() (err error) {
		if err := errors.Join(AddBridge("br1"), AddBridge("br2")); err != nil {
			return err
		}
		if before, err = BridgesNF(); err != nil {
			return err
		}
		if err := errors.Join(SetBridgeNF("br1", 0, true), SetBridgeNF("br2", 1, true),
			SetBridgeNF("br2", 0, true), SetBridgeNF("br2", 0, false)); err != nil {
			return err
		}
		after, err = BridgesNF()
		gone = SetBridgeNF("br3", 0, true)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string][2]bool{"br1": {}, "br2": {}}; !maps.Equal(before, want) {
		t.Errorf("new bridges: %v", before)
	}
	if want := map[string][2]bool{"br1": {true, false}, "br2": {false, true}}; !maps.Equal(after,
		want) {
		t.Errorf("%v, want %v", after, want)
	}
	if !errors.Is(gone, ErrGone) {
		t.Errorf("a bridge that is not there: %v", gone)
	}
}
