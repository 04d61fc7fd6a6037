package ovs

import "fmt"

// Machines is the Open vSwitch that the machine runs anyway, reached by its
// default database. It has bridges of others: commands must name their own.
type Machines struct{}

// Version asks the running ovs-vswitchd, as "3.1.0". An error says that it is not
// installed (wraps exec.ErrNotFound), does not run, or may not be asked.
func (Machines) Version() (string, error) {
	// The database alone would accept commands that are never executed.
	out, err := run("ovs-appctl", "--timeout=5", "-vconsole:off", "--target=ovs-vswitchd", "version")
	if err != nil {
		return "", err
	}
	if m := versionLine.FindStringSubmatch(out); m != nil {
		return m[1], nil
	}
	return "", fmt.Errorf("ask Open vSwitch's version: %q", out)
}

// Set runs ovs-vsctl with args, waits until the switch has done it and returns
// what was printed.
func (Machines) Set(args ...string) (string, error) {
	return run("ovs-vsctl", append([]string{"--timeout=10", "-vconsole:off", "--no-syslog"}, args...)...)
}

// Ports reads the counters of a bridge's ports by number.
func (Machines) Ports(bridge string) (map[string]Port, error) {
	out, err := run("ovs-ofctl", "--timeout=10", "-vconsole:off", "-vsyslog:off", "--no-names", "dump-ports", bridge)
	if err != nil {
		return nil, err
	}
	return parsePorts(out)
}
