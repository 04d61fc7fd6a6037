package sock

import (
	"errors"
	"fmt"
	"os"

	"github.com/prometheus/procfs"
)

// thread returns the calling thread in /proc: /proc/net would show the namespace of the process's
// first thread. It returns an error if the mounted /proc is of another PID namespace.
func thread() (procfs.Proc, error) {
	self, err := os.Readlink("/proc/thread-self")
	if err != nil {
		return procfs.Proc{}, err
	}
	var pid, tid int
	if _, err := fmt.Sscanf(self, "%d/task/%d", &pid, &tid); err != nil {
		return procfs.Proc{}, fmt.Errorf("/proc/thread-self is %q: %w", self, err)
	}
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return procfs.Proc{}, err
	}
	return fs.Thread(pid, tid)
}

// Opens returns the numbers of TCP connections dialled and accepted (RFC 4022: ActiveOpens,
// PassiveOpens) since the namespace was made.
func Opens() (active, passive uint64, err error) {
	t, err := thread()
	if err != nil {
		return 0, 0, fmt.Errorf("read TCP's counters: %w", err)
	}
	c, err := snmp(t)
	if err != nil {
		return 0, 0, err
	}
	return uint64(*c.ActiveOpens), uint64(*c.PassiveOpens), nil
}

func snmp(t procfs.Proc) (procfs.ProcSnmp, error) {
	c, err := t.Snmp()
	if err == nil && (c.ActiveOpens == nil || c.PassiveOpens == nil) {
		err = errors.New("/proc/net/snmp has no ActiveOpens and PassiveOpens")
	}
	if err != nil {
		return c, fmt.Errorf("read TCP's counters: %w", err)
	}
	return c, nil
}

// Received returns the number of UDP datagrams that the namespace's sockets received since it was
// made.
func Received() (uint64, error) {
	t, err := thread()
	if err != nil {
		return 0, fmt.Errorf("read UDP's counters: %w", err)
	}
	c, err := t.Snmp()
	if err != nil {
		return 0, fmt.Errorf("read UDP's counters: %w", err)
	}
	return received(t, c)
}

func received(t procfs.Proc, c procfs.ProcSnmp) (total uint64, err error) {
	if n := c.Udp.InDatagrams; n != nil {
		total += uint64(*n)
	}
	six, err := t.Snmp6()
	if err != nil {
		return 0, fmt.Errorf("read UDP's counters: %w", err)
	}
	if n := six.Udp6.InDatagrams; n != nil {
		total += uint64(*n)
	}
	return total, nil
}

// Arrivals returns the number of TCP connections accepted and UDP datagrams received since the
// namespace was made.
func Arrivals() (uint64, error) {
	t, err := thread()
	if err != nil {
		return 0, fmt.Errorf("read TCP's counters: %w", err)
	}
	c, err := snmp(t)
	if err != nil {
		return 0, err
	}
	datagrams, err := received(t, c)
	return uint64(*c.PassiveOpens) + datagrams, err
}
