package netns

import (
	"errors"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFindListsEachNamespaceOnce(t *testing.T) {
	n, err := New()
	if errors.Is(err, unix.EPERM) && os.Getenv("CI") != "true" {
		t.Skip("network namespaces need root here")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	all, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, f := range all {
		defer f.Close()
		ids = append(ids, f.ID)
	}
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 || all[0].ID != own || all[0].PID != os.Getpid() {
		t.Errorf("first %+v, want this process in %s", all, own)
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != len(all) {
		t.Errorf("namespaces are listed twice: %v", ids)
	}
	var id string
	err = all[0].Visit(func() (err error) {
		id, err = os.Readlink("/proc/thread-self/ns/net")
		return err
	})
	if err != nil || id != own {
		t.Errorf("a visit saw %s, want %s: %v", id, own, err)
	}
}
