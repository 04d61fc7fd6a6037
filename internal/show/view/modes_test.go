package view

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/documenttest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

func TestModes(t *testing.T) {
	const far = "docker has only this machine"
	var out bytes.Buffer
	d := Modes([]Mode{
		{Mode: "host", Paths: []ModePath{{From: "host", To: "loopback", Here: true},
			{From: "remote", To: "address", Missing: far},
			{From: "remote-container", To: "address", Missing: far},
			{From: "container", To: "loopback", Missing: "no image", Remedy: "toll image"}}},
		{Mode: "netkit", Paths: []ModePath{{From: "host", To: "container", Missing: "no netkit"},
			{From: "remote", To: "container", Missing: "no netkit"}},
			Apart: []mode.Apart{{From: "container", Why: "there is none", Around: "veth"},
				{From: "remote-container", Why: "there is none", Around: "veth"}}},
	})
	if err := format.All()[0].Write(&out, d, format.Options{}); err != nil {
		t.Fatal(err)
	}
	if missing := documenttest.Missing(d, out.String()); len(missing) > 0 {
		t.Errorf("not in the document: %q", missing)
	}
	words := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"  not here from remote to address and from remote-container to address: " + far,
		"  not here from container to loopback: no image; hint: toll image",
		"  not from container and remote-container: there is none; instead: veth",
		"  not here: no netkit",
	} {
		if !testgolden.HasLine(out.String(), want) {
			t.Errorf("no line %q in %q", want, out.String())
		}
	}
	for _, once := range []string{far, "no netkit", "there is none"} {
		if n := strings.Count(words, once); n != 1 {
			t.Errorf("%q is said %d times", once, n)
		}
	}
}

func TestModeLines(t *testing.T) {
	const far = "docker has only this machine"
	d := ModeLines([]Mode{
		{Mode: "host", Docker: "--network host", Usual: true, Paths: []ModePath{{Here: true}}},
		{Mode: "routed", Docker: "routed", Paths: []ModePath{{Here: true}}},
		{Mode: "bridge", Docker: "--network NAME", Usual: true, Paths: []ModePath{{Here: true},
			{Missing: far}, {Missing: far}, {Missing: "no image", Remedy: "toll image"}}},
		{Mode: "netkit", Docker: "none", Paths: []ModePath{{Missing: far}}},
	})
	var rows [][]string
	for _, r := range d.Sections[0].Blocks[0].(document.Table).Rows {
		rows = append(rows, []string{r.Cells[0].Text, r.Cells[1].Text, r.Cells[2].Text})
	}
	want := [][]string{{"host", "--network host", "usual"}, {"routed", "routed", "yes"},
		{"bridge", "--network NAME", "in part"}, {"netkit", "none", "no"}}
	if !reflect.DeepEqual(rows, want) {
		t.Errorf("%q, want %q", rows, want)
	}
	var missing []string
	for _, b := range d.Sections[1].Blocks {
		missing = append(missing, b.(document.Paragraph).Text.String())
	}
	lacks := []string{"bridge and netkit: " + far, "bridge: no image; hint: toll image"}
	if !slices.Equal(missing, lacks) {
		t.Errorf("%q, want %q", missing, lacks)
	}
	d = ModeLines([]Mode{{Mode: "host", Paths: []ModePath{{Missing: far}}},
		{Mode: "bridge", Paths: []ModePath{{Missing: far}, {Missing: far}}}})
	if got := d.Sections[1].Blocks[0].(document.Paragraph).Text.String(); got != "all: "+far {
		t.Errorf("%q", got)
	}
}

// A terminal of 80 columns has room for what each mode is called.
func TestModeLinesAreWhole(t *testing.T) {
	var list []Mode
	for _, m := range mode.All() {
		list = append(list, Mode{Mode: string(m.Name), Docker: m.Docker,
			Paths: []ModePath{{Here: true}, {Missing: "no image"}}})
	}
	text := written(t, "table", ModeLines(list), format.Options{Width: 80})
	for _, m := range list {
		if !strings.Contains(text, m.Docker) {
			t.Errorf("%s: %q is cut", m.Mode, m.Docker)
		}
	}
}
