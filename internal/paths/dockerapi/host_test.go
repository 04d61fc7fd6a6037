package dockerapi

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

func TestFindHost(t *testing.T) {
	home := t.TempDir()
	write := func(file, text string) {
		t.Helper()
		file = filepath.Join(home, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	meta := func(name string) string { // the SHA-256 names the folder
		sum := sha256.Sum256([]byte(name))
		return ".docker/contexts/meta/" + hex.EncodeToString(sum[:]) + "/meta.json"
	}
	write(".docker/config.json", `{"auths": {}, "currentContext": "mine"}`)
	write(meta("mine"), `{"Name": "mine", "Endpoints": {"docker": {"Host": "unix:///mine"}}}`)
	write(meta("bare"), `{"Name": "bare"}`)
	write(meta("torn"), `{"Name": "to`)
	write("torn/config.json", `{`)
	write("none/config.json", `{"auths": {}}`)
	write("gone/config.json", `{"currentContext": "gone"}`)
	for _, c := range []struct {
		name string
		env  map[string]string
		want string
		err  string
	}{
		{"host", map[string]string{"DOCKER_HOST": "unix:///given", "DOCKER_CONTEXT": "mine"},
			"unix:///given", ""},
		{"configured", nil, "unix:///mine", ""},
		{"named", map[string]string{"DOCKER_CONTEXT": "mine", "DOCKER_CONFIG": home + "/none"}, "",
			"there is no docker context \"mine\" in DIR/none: open DIR/none/contexts/meta/3fd30542fe3f61b14bd4a4b2dc0b6fb30fa6f63ebce52dd1778aaa8c4dc02cff/meta.json: no such file or directory"},
		{"default", map[string]string{"DOCKER_CONTEXT": "default"}, DefaultHost, ""},
		{"no-configuration", map[string]string{"DOCKER_CONFIG": "/nonexistent"}, DefaultHost, ""},
		{"no-home", map[string]string{"HOME": ""}, DefaultHost, ""},
		{"no-context", map[string]string{"DOCKER_CONFIG": home + "/none"}, DefaultHost, ""},
		{"unreadable", map[string]string{"DOCKER_CONFIG": home + "/none/config.json"}, DefaultHost,
			""},
		{"torn", map[string]string{"DOCKER_CONFIG": home + "/torn"}, DefaultHost, ""},
		{"unknown", map[string]string{"DOCKER_CONTEXT": "yours"}, "", "there is no docker context \"yours\" in DIR/.docker: open DIR/.docker/contexts/meta/5eb2da9c26b65531549c8863fa023f9b48c1d3f0e17e01d7c4978876c724b21f/meta.json: no such file or directory"},
		{"configured-and-gone", map[string]string{"DOCKER_CONFIG": home + "/gone"}, "",
			"there is no docker context \"gone\" in DIR/gone: open DIR/gone/contexts/meta/283bb9deef02e6843abfb538efa1eca70801bd8a701c3f98191e123496339247/meta.json: no such file or directory"},
		{"torn-context", map[string]string{"DOCKER_CONTEXT": "torn"}, "", "the docker context \"torn\" cannot be read: read DIR/.docker/contexts/meta/00cc10cc5ab0a89fbf4d84a229bf234e739ba6294a832d2c042ce8d9a1949cf7/meta.json: unexpected end of JSON input"},
		{"without-a-daemon", map[string]string{"DOCKER_CONTEXT": "bare"}, "",
			"the docker context \"bare\" has no address of a daemon"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := FindHost(func(key string) string {
				if v, ok := c.env[key]; ok || key != "HOME" {
					return v
				}
				return home
			})
			var refused *HostError
			if got != c.want || (err != nil) != (c.err != "") ||
				err != nil && (!errors.As(err, &refused) || testgolden.Stable(err.Error()) != c.err ||
					refused.Remedy == "") {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestSocket(t *testing.T) {
	for host, want := range map[string]string{"unix:///var/run/docker.sock": "/var/run/docker.sock",
		"tcp://10.0.0.1:2375": "", "ssh://me@there": "", "::": ""} {
		if got, err := Socket(host); got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v", host, got, err)
		}
	}
}
