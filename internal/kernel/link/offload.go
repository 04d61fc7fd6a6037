package link

import (
	"fmt"

	"github.com/safchain/ethtool"
)

// features reads the device's offloads by the short names that `ethtool -k`
// users know.
func features(name string) (map[string]bool, error) {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return nil, fmt.Errorf("read offloads of %s: %w", name, err)
	}
	defer e.Close()
	all, err := e.Features(name)
	if err != nil {
		return nil, fmt.Errorf("read offloads of %s: %w", name, err)
	}
	out := map[string]bool{}
	for short, feature := range offloads {
		if on, ok := all[feature]; ok {
			out[short] = on
		}
	}
	return out, nil
}
