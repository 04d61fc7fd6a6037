package dockerapi

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

// podmanSays answers as Podman's service.
func podmanSays(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.URL.Path, "/libpod/info") {
		_, _ = w.Write([]byte(`{"host": {"networkBackend": "netavark"}, "version": ` +
			`{"Version": "5.4.2"}}`))
		return
	}
	engineSays("1.41", anEngine)(w, r)
}

func TestEngines(t *testing.T) {
	docker, podman := serve(t, engineSays("1.51", anEngine)), serve(t, podmanSays)
	broken := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
	})
	none := "unix://" + filepath.Join(t.TempDir(), "none")
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	for _, c := range []struct {
		name, docker, podman string
		want                 string // the engines' commands
		missing              string // "": no error
	}{
		{"both", docker, podman, "docker podman", ""},
		{"podman", none, podman, "podman", ""},
		{"docker", docker, none, "docker", ""},
		{"one-service", podman, podman, "podman", ""},
		{"neither", none, none, "", "no Docker daemon listens at DIR/none"},
		{"broken", broken, podman, "podman",
			"the Docker daemon at unix://DIR/s does not answer like one"},
		{"unknown-context", "", podman, "podman", "there is no docker context \"yours\" in DIR"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("DOCKER_HOST", c.docker)
			t.Setenv("CONTAINER_HOST", c.podman)
			t.Setenv("DOCKER_CONTEXT", "")
			if c.docker == "" {
				t.Setenv("DOCKER_CONTEXT", "yours")
			}
			all, err := Engines(t.Context(), t.TempDir())
			var got []string
			for _, d := range all {
				got = append(got, d.Command())
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			}
			var u *machine.UnsupportedError
			if strings.Join(got, " ") != c.want || (err == nil) != (c.missing == "") ||
				err != nil && (!errors.As(err, &u) || testgolden.Stable(u.Missing) != c.missing) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestEnginesInOrder(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{nil, "docker podman"},
		{map[string]string{"CONTAINER_HOST": "unix:///p"}, "podman docker"},
		{map[string]string{"CONTAINER_HOST": "unix:///p", "DOCKER_HOST": "unix:///d"},
			"docker podman"},
	} {
		var got []string
		for _, s := range inOrder(func(key string) string { return c.env[key] }) {
			got = append(got, s.short)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v: %q", c.env, got)
		}
	}
}
