package dockerapi

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

// Refusals of Podman's service name it, and its variable.
func TestPodmanIsNamed(t *testing.T) {
	for host, want := range map[string]string{
		"tcp://10.0.0.1:2375": "the Podman service at tcp://10.0.0.1:2375 has no Unix socket, so it may be on another machine, and toll measures on this one",
		"unix:///nonexistent": "no Podman service listens at /nonexistent",
		serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
		}): "the Podman service at unix://DIR/s does not answer like one",
	} {
		t.Setenv("CONTAINER_HOST", host)
		_, err := ConnectPodman(t.Context(), t.TempDir())
		var u *machine.UnsupportedError
		if !errors.As(err, &u) || testgolden.Stable(u.Missing) != want ||
			strings.Contains(u.Missing+u.Remedy, "ocker") {
			t.Errorf("%s: %v, %+v", host, err, u)
		}
	}
}
