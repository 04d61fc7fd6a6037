package dockerapi

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/moby/moby/client"
)

func TestRemoveNetworkWaitsForTasks(t *testing.T) {
	const inUse = `rpc error: code = FailedPrecondition desc = network n is in use by task x`
	for _, tt := range []struct {
		name  string
		first string // the daemon's first answer
		want  int32  // requests; then the network is gone
	}{
		{"in-use", inUse, 2},
		{"endpoints", "network n has active endpoints", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var removals atomic.Int32
			host := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if r.Method == http.MethodDelete && removals.Add(1) == 1 {
					w.WriteHeader(http.StatusInternalServerError)
					fmt.Fprintf(w, `{"message": %q}`, tt.first)
				}
			})
			api, err := client.New(client.WithHost(host))
			if err != nil {
				t.Fatal(err)
			}
			defer api.Close()
			err = removeNetwork(api, "n")
			if n := removals.Load(); n != tt.want || (err == nil) != (n > 1) {
				t.Errorf("%d requests, %v", n, err)
			}
		})
	}
}
