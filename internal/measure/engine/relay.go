package engine

import (
	"fmt"
	"slices"
	"sync"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

type relays struct {
	mu sync.Mutex
	// own has the original CPUs by PID.
	own map[int][]int
}

// move moves relays to the CPUs, or back to their original ones if cpus is empty.
func (r *relays) move(p *path.Path, cpus []int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range p.Proxies {
		pid := x.PID
		if x.Machine != nil {
			continue
		}
		own, moved := r.own[pid]
		if !moved {
			if len(cpus) == 0 {
				continue
			}
			var err error
			if own, err = machine.AffinityOf(pid); err != nil {
				return fmt.Errorf("%s: %w", x.Name, err)
			}
			if r.own == nil {
				r.own = map[int][]int{}
			}
			r.own[pid] = own
		}
		to := cpus
		if len(to) == 0 {
			to = own
		}
		if now, err := machine.AffinityOf(pid); err == nil && slices.Equal(now, to) {
			continue
		}
		if err := machine.SetAffinity(pid, to); err != nil {
			return fmt.Errorf("%s: %w", x.Name, err)
		}
	}
	return nil
}
