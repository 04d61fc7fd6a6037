package link

import (
	"maps"
	"testing"

	"github.com/safchain/ethtool"
)

func TestFeatures(t *testing.T) {
	e, err := ethtool.NewEthtool()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	want, err := e.Features("lo")
	if err != nil {
		t.Skip(err)
	}
	for range 2 {
		got, err := features("lo")
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(got, want) {
			t.Errorf("features of lo:\n%v\nthe library says\n%v", got, want)
		}
	}
	for _, none := range []string{"none-such", "a-name-that-is-too-long"} {
		if got, err := features(none); err == nil {
			t.Errorf("features of %s, which is not there: %v", none, got)
		}
	}
}
