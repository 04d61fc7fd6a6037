package nft_test

import (
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
)

func TestFollow(t *testing.T) {
	ns := netnstest.New(t)
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
