package swarm

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
)

// An unresponsive manager must not delay the end for long, whatever is left.
func TestRemovalsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const things = 30
		r := &run{}
		tried := map[string]bool{}
		began := time.Now()
		for i := range things {
			name := fmt.Sprintf("toll-%d", i)
			err := r.removed(dockerapi.Service, name, func(ctx context.Context) error {
				tried[name] = true
				<-ctx.Done()
				return ctx.Err()
			})
			if err == nil {
				t.Error("it was removed")
			}
		}
		if took := time.Since(began); took < removal || took > removal+things*time.Second {
			t.Errorf("%d things took %s", things, took)
		}
		if len(tried) != things {
			t.Errorf("%d of %d were tried", len(tried), things)
		}
	})
}
