package dockerapi

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/moby/moby/client"
)

// A swarm without a leader is a temporary state.
func TestNotManager(t *testing.T) {
	for _, c := range []struct {
		status     int
		says       string
		want       bool
		leaderless bool
	}{
		{http.StatusServiceUnavailable,
			`This node is not a swarm manager. Use "docker swarm init" or "docker swarm join" ` +
				`to connect this node to swarm and try again.`, true, false},
		{http.StatusServiceUnavailable,
			"This node is not a swarm manager. Worker nodes can't be used to view or modify " +
				"cluster state. Please run this command on a manager node or promote the " +
				"current node to a manager.", true, false},
		{http.StatusServiceUnavailable,
			"The swarm does not have a leader. It's possible that too few managers are online. " +
				"Make sure more than half of the managers are online.", false, true},
		{http.StatusInternalServerError,
			"rpc error: code = DeadlineExceeded desc = context deadline exceeded", false, true},
		{http.StatusNotFound, "service not a swarm manager not found", false, false},
	} {
		host := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Api-Version", "1.51")
			w.Header().Set("Content-Type", "application/json")
			if r.Method == http.MethodDelete {
				w.WriteHeader(c.status)
				_ = json.NewEncoder(w).Encode(map[string]string{"message": c.says})
			}
		})
		api, err := NewClient(host)
		if err != nil {
			t.Fatal(err)
		}
		_, err = api.ServiceRemove(t.Context(), "x", client.ServiceRemoveOptions{})
		if err == nil || NotManager(err) != c.want || Leaderless(err) != c.leaderless {
			t.Errorf("%d %s: %v, %t, %t", c.status, c.says, err, NotManager(err), Leaderless(err))
		}
		if err := api.Close(); err != nil {
			t.Error(err)
		}
	}
}
