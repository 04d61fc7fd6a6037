package dockerapi

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/moby/moby/client"
)

// Podman's list fails while one of its containers is being removed.
func TestContainersOfPodman(t *testing.T) {
	for first, want := range map[string]int32{ // the requests, and then a list
		`getting container from store "40279de": container not known`:        2,
		`unable to find container 40279de: no such container`:                2,
		`getting container from store "40279de": operation is not permitted`: 1,
	} {
		var lists atomic.Int32
		host := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if strings.HasSuffix(r.URL.Path, "/containers/json") && lists.Add(1) == 1 {
				w.WriteHeader(http.StatusInternalServerError)
				fmt.Fprintf(w, `{"message": %q}`, first)
				return
			}
			fmt.Fprint(w, `[{"Id": "left"}]`)
		})
		api, err := client.New(client.WithHost(host))
		if err != nil {
			t.Fatal(err)
		}
		defer api.Close()
		all, err := Containers(t.Context(), api, client.ContainerListOptions{All: true})
		if n := lists.Load(); n != want || (err == nil) != (n > 1) || (len(all) == 1) != (n > 1) {
			t.Errorf("%s: %d requests, %v, %v", first, n, all, err)
		}
	}
}

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
