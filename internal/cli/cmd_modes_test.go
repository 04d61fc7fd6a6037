package cli

import (
	"bytes"
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/documenttest"
)

func TestModesByReason(t *testing.T) {
	const far = "docker has only this machine"
	var out bytes.Buffer
	d := modesDocument([]modeInfo{
		{Mode: "host", Paths: []routeInfo{{From: "host", To: "loopback", Here: true},
			{From: "remote", To: "address", Missing: far},
			{From: "remote-container", To: "address", Missing: far},
			{From: "container", To: "loopback", Missing: "no image", Remedy: "toll image"}}},
		{Mode: "netkit", Paths: []routeInfo{{From: "host", To: "container", Missing: "no netkit"},
			{From: "remote", To: "container", Missing: "no netkit"}},
			Apart: []apartInfo{{"container", "there is none", "veth"},
				{"remote-container", "there is none", "veth"}}},
	})
	if err := format.All()[0].Write(&out, d, format.Options{}); err != nil {
		t.Fatal(err)
	}
	if missing := documenttest.Missing(d, out.String()); len(missing) > 0 {
		t.Errorf("not in the document: %q", missing)
	}
	words := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"not here from remote to address and from remote-container to address: " + far +
			" not here from container to loopback: no image; hint: toll image",
		"not from container and remote-container: there is none; instead: veth not here: no netkit",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	for _, once := range []string{far, "no netkit", "there is none"} {
		if n := strings.Count(words, once); n != 1 {
			t.Errorf("%q is said %d times", once, n)
		}
	}
}

// A check that a signal cut short says nothing about the machine.
func TestModesThatAreStopped(t *testing.T) {
	if !mayBuild() {
		t.Skip("network namespaces need root here")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(signaled{syscall.SIGINT})
	var out, said bytes.Buffer
	code := run(ctx, env{stdout: &out, stderr: &said}, []string{"modes"})
	if want := exitSignalled + int(syscall.SIGINT); code != want || out.Len()+said.Len() > 0 {
		t.Errorf("exit code %d, want %d\n%s%s", code, want, out.String(), said.String())
	}
}
