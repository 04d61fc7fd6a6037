package main

import (
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
)

// fromContainers asks servers that only the place can reach: a container's own loopback, and a name
// that only the Docker DNS server of a network knows. None of them is a database, so a server that
// is reached does not speak first.
func fromContainers(e *dockerHost, t *testing.T, bin string) {
	const reached = "connected, but no answer within"
	for _, tt := range []struct{ from, at, says string }{
		{"host", "127.0.0.1:9000", "connection refused"},
		{"container:quiet", "127.0.0.1:9000", reached},
		{"network:dual", "mate:9000", reached},
		{"container:fight", "127.0.0.1:9000", "container fight does not run"},
		{"network:nowhere", "127.0.0.1:9000", "there is no network nowhere"},
	} {
		_, err := e.try(bin, "sql", "--dsn", "a=mysql://app@"+tt.at+"/shop", "--from", tt.from, "--rounds", "1", "--no-history", "--quiet", "--timeout", "1s")
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s from %s: %v, want %q", tt.at, tt.from, err, tt.says)
		}
	}
	if left := e.run("docker", "ps", "-aq", "--filter", "label="+dockerapi.RunLabel); left != "" {
		t.Errorf("left behind: %s", left)
	}
}
