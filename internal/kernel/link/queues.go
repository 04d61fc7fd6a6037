package link

import (
	"fmt"

	"github.com/safchain/ethtool"
)

// Queues holds the numbers of a device's queues in each direction, and their maxima.
type Queues struct{ Send, Receive, MostSend, MostReceive int }

// QueuesOf reads the numbers of a device's queues, as `ethtool -l` does.
func QueuesOf(name string) (q Queues, err error) {
	err = withEthtool(func(e *ethtool.Ethtool) error {
		c, err := e.GetChannels(name)
		q = Queues{int(c.TxCount), int(c.RxCount), int(c.MaxTx), int(c.MaxRx)}
		return err
	})
	if err != nil {
		return q, fmt.Errorf("read queues of %s: %w", name, err)
	}
	return q, nil
}

// SetQueues gives the device n queues in each direction, as `ethtool -L` does, and reads them back.
func SetQueues(name string, n int) error {
	err := withEthtool(func(e *ethtool.Ethtool) error {
		c, err := e.GetChannels(name)
		if err != nil {
			return err
		}
		c.TxCount, c.RxCount = uint32(n), uint32(n)
		if _, err := e.SetChannels(name, c); err != nil {
			return err
		}
		c, err = e.GetChannels(name)
		if err == nil && (c.TxCount != uint32(n) || c.RxCount != uint32(n)) {
			err = errKept
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("set queues of %s to %d: %w", name, n, err)
	}
	return nil
}

func withEthtool(f func(*ethtool.Ethtool) error) error {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return err
	}
	defer e.Close()
	return f(e)
}
