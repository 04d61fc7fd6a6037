package local

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Namespaces opens the namespaces of spots, each once, and lists all their devices. The caller
// closes them.
func Namespaces(spots []Described) (out []path.Namespace, err error) {
	seen := map[uint64]bool{}
	for _, at := range spots {
		err = at.Do(func() error {
			f, err := os.Open("/proc/thread-self/ns/net")
			if err != nil {
				return err
			}
			var st unix.Stat_t
			if err := unix.Fstat(int(f.Fd()), &st); err != nil || seen[st.Ino] {
				return errors.Join(err, f.Close())
			}
			seen[st.Ino] = true
			out = append(out, path.Namespace{File: f})
			all, err := link.Survey()
			for _, d := range all {
				n := &out[len(out)-1]
				n.Links = append(n.Links, sample.Link{Name: d.Name, Kind: d.Kind, Where: at.Where,
					MTU: d.MTU, NetNS: uint32(st.Ino), Index: uint32(d.Index)})
			}
			return err
		})
		if err != nil {
			for _, n := range out {
				n.Close()
			}
			return nil, fmt.Errorf("list the devices of %s: %w", at.Where, err)
		}
	}
	return out, nil
}
