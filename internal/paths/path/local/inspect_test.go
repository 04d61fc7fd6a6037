package local

import (
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/bpf/bpftest"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

type here struct{ Space }

func (here) Do(f func() error) error { return f() }

func TestInspectNoticesProgramsOfControlGroups(t *testing.T) {
	pid, dir := bpftest.Grouped(t)
	p := bpftest.Program(t, "other", ebpf.SockOps, ebpf.AttachCGroupSockOps, 1)
	spots := []Inspected{{Space: here{}, Where: "server container", Devices: []string{}, PID: pid}}
	before, err := Inspect(spots)
	if err != nil {
		t.Fatal(err)
	}
	l, err := link.AttachCgroup(link.CgroupOptions{
		Path: dir, Attach: ebpf.AttachCGroupSockOps, Program: p})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	now, err := Inspect(spots)
	if err != nil {
		t.Fatal(err)
	}
	found := path.Differences(before, now)
	if len(found) != 1 || found[0].Where != "server container" ||
		found[0].What != "BPF programs of its control group" ||
		!strings.Contains(found[0].Is, "sock_ops program ") {
		t.Errorf("%+v", found)
	}
}
