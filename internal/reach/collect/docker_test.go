package collect

import (
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
)

// Each answer of an engine has a time of its own. Containers about which it does not answer are
// missing, with a word; after three, no more are asked for.
func TestSlowEngine(t *testing.T) {
	defer func(d time.Duration) { dockerTimeout = d }(dockerTimeout)
	dockerTimeout = time.Second
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "sock"))
	if err != nil {
		t.Fatal(err)
	}
	answers := http.NewServeMux()
	say := func(pattern, text string) {
		answers.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, text)
		})
	}
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	const names = "early hang1 dead hang2 hang3 late"
	var list []string
	for name := range strings.FieldsSeq(names) {
		list = append(list, fmt.Sprintf(`{"Id":%q,"State":"running"}`, name))
	}
	say("/_ping", "OK")
	say("/{v}/version", `{"Version":"29.0.0","ApiVersion":"1.52","MinAPIVersion":"1.44"}`)
	say("/{v}/info", `{}`)
	say("/{v}/networks", `[]`)
	say("/{v}/containers/json", "["+strings.Join(list, ",")+"]")
	for name := range strings.FieldsSeq(names) {
		at := "/{v}/containers/" + name
		answers.HandleFunc(at+"/logs", hang)
		if strings.HasPrefix(name, "hang") {
			answers.HandleFunc(at+"/json", hang)
			continue
		}
		code := 0
		if name == "dead" { // its last words are asked for
			code = 1
		}
		say(at+"/json", fmt.Sprintf(
			`{"Id":%q,"Name":"/%s","State":{"Status":"running","ExitCode":%d},"Config":{}}`,
			name, name, code))
	}
	server := &http.Server{Handler: answers}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	t.Setenv("DOCKER_HOST", "unix://"+l.Addr().String())
	c := &collector{f: &ports.Facts{}}
	c.docker(t.Context())
	var got []string
	for _, x := range c.f.Containers {
		got = append(got, x.Name)
	}
	said := fmt.Sprint(c.f.Missing)
	if strings.Join(got, " ") != "early dead" ||
		said != "[{names, networks and ports of some containers the engine did not answer "+
			"within 1 s, several times run toll ports again}]" {
		t.Errorf("%q, %s", got, said)
	}
}
