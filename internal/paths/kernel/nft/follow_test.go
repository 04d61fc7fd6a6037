package nft_test

import (
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/pathtest"
)

func TestFollow(t *testing.T) {
	ns, err := netns.New()
	if err != nil {
		pathtest.SkipOrFail(t, "network namespaces need root here: %v", err)
	}
	defer ns.Close()
	done := make(chan struct{})
	var told <-chan struct{}
	if err := ns.Do(func() (err error) { told, err = nft.Follow(done); return err }); err != nil {
		t.Fatal(err)
	}
	if err := ns.Do(func() error {
		return nft.Apply([]nft.Chain{{Table: "filter", Name: "DOCKER-USER"}})
	}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-told:
	case <-time.After(time.Minute):
		t.Fatal("nobody was told")
	}
	close(done)
	for range told {
	}
}
