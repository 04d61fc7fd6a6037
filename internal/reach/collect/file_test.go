package collect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
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

// A machine that would be judged for minutes is refused at once, with the number.
func TestLoadLarge(t *testing.T) {
	m := func() *replica.Machine {
		return &replica.Machine{Arch: runtime.GOARCH, Spaces: []replica.Space{{ID: "net:[1]"}}}
	}
	for says, change := range map[string]func(*ports.Facts, *replica.Machine){
		"10001 listening sockets": func(f *ports.Facts, _ *replica.Machine) {
			f.Listeners = make([]ports.Listener, maxListeners)
			f.Containers = []ports.Container{{Listeners: make([]ports.Listener, 1)}}
		},
		"5001 proxies": func(f *ports.Facts, _ *replica.Machine) {
			f.Proxies = make([]ports.Proxy, maxProxies+1)
		},
		"1201 devices": func(_ *ports.Facts, m *replica.Machine) {
			for i := range maxDevices + 1 {
				m.Spaces[0].Links = append(m.Spaces[0].Links,
					link.Saved{Name: fmt.Sprintf("br%d", i), Index: i + 1, Kind: "bridge"})
			}
		},
		"10001 routes": func(_ *ports.Facts, m *replica.Machine) {
			m.Spaces[0].Routes = slices.Repeat([]raw.Message{{Type: unix.RTM_NEWROUTE}}, maxRoutes+1)
		},
		"a text has 8388609 bytes": func(f *ports.Facts, _ *replica.Machine) {
			f.Docker = strings.Repeat("x", maxText+1)
		},
	} {
		in := saved{Schema: savedSchema, Facts: &ports.Facts{}, Machine: m()}
		change(in.Facts, in.Machine)
		b, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var large tooLarge
		if _, _, err = Load(bytes.NewReader(b)); !errors.As(err, &large) ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%s: %.200v", says, err)
		}
	}
}

func TestLongestText(t *testing.T) {
	for text, want := range map[string]int{``: 0, `{"a":"bcd"}`: 3, `"a\"bc" "\\"`: 5, `"open`: 0} {
		if n := longestText([]byte(text)); n != want {
			t.Errorf("%s: %d", text, n)
		}
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
