package lever

import "strings"

var podmanWords = strings.NewReplacer(
	"Docker's default bridge", "Podman's default network",
	"docker0 br-*", "podman*",
	`docker0\ *|br-*|`, `podman*\ *|`,
	"br-ID", "podmanN",
	"docker inspect", "podman inspect",
	"docker run --network bridge", "podman run --network podman",
	"docker run", "podman run",
	"docker network create -o com.docker.network.driver.mtu", "podman network create -o mtu",
	"com.docker.network.driver.mtu", "mtu",
	"network_mode: bridge", "network_mode: podman",
	", with userland-proxy and icc as they are by default", "",
	" (icc=false, DOCKER-USER)", "",
	" without docker-proxy", "",
)

// OfPodman returns the lever in Podman's words, without snippets for Docker's daemon.json.
func (l Lever) OfPodman() Lever {
	l.Gist, l.GivesUp = podmanWords.Replace(l.Gist), podmanWords.Replace(l.GivesUp)
	var own []Snippet
	for _, s := range l.Permanent {
		if strings.Contains(s.Where, "daemon.json") {
			continue
		}
		lines := make([]string, 0, len(s.Lines))
		for _, line := range s.Lines {
			line = podmanWords.Replace(line)
			if !strings.HasPrefix(line, "# ") {
				lines = append(lines, line)
			}
		}
		own = append(own, Snippet{podmanWords.Replace(s.Where), lines})
	}
	l.Permanent = own
	return l
}
