package collect

import (
	"bytes"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/paths/replica"
	"github.com/bridgetoll/bridgetoll/internal/ports"
)

func TestSaveLoad(t *testing.T) {
	m := &replica.Machine{Arch: runtime.GOARCH, Kernel: "6.18.44", Spaces: []replica.Space{{
		ID: "net:[4026531840]", Text: []replica.RuleText{{Table: "filter", Chain: "INPUT",
			Number: 1, Text: "-A INPUT -j DROP"}}}}}
	f := &ports.Facts{Docker: "28.5.2", Copy: &ports.Copy{Machine: m},
		Proxies:    []ports.Proxy{{PID: 7, Command: []string{"rootlesskit", "--secret"}}},
		Containers: []ports.Container{{Name: "web\x1b[2J", LastLog: "the password is secret"}}}
	var b bytes.Buffer
	if err := Save(t.Context(), &b, f); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "secret") {
		t.Errorf("logs or command lines are in %s", &b)
	}
	got, back, err := Load(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if got.Docker != "28.5.2" || got.Proxies[0].PID != 7 || !reflect.DeepEqual(m, back) {
		t.Errorf("%+v %+v", got, back)
	}
	if name := got.Containers[0].Name; strings.Contains(name, "\x1b") {
		t.Errorf("%q would change the terminal", name)
	}
	if f.Containers[0].LastLog == "" || f.Proxies[0].Command == nil {
		t.Error("saving changed the facts")
	}
}

func TestLoadOthers(t *testing.T) {
	for text, says := range map[string]string{
		"":                                  "unexpected end",
		"[]":                                "cannot be read as",
		"{}":                                `its schema is ""`,
		`{"schema":"bridgetoll.machine/2"}`: "not " + `"bridgetoll.machine/1"`,
		`{"schema":"bridgetoll.machine/1"}`: "the file holds no machine",
		`{"schema":"bridgetoll.machine/1","facts":{}}`: "the file holds no machine",
	} {
		if _, _, err := Load(strings.NewReader(text)); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
