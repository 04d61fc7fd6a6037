package ovs

import "fmt"

// Machines is the Open vSwitch that already runs on the machine, reached by its default database.
// It also has other programs' bridges, so commands must name their own.
type Machines struct{}

// Version asks the running ovs-vswitchd for its version, such as "3.1.0". It returns an error if
// Open vSwitch is not installed (wraps exec.ErrNotFound), does not run, or may not be queried.
func (Machines) Version() (string, error) {
	// The database alone would accept commands that are never executed.
	out, err := run("ovs-appctl", "--timeout=5", "-vconsole:off", "--target=ovs-vswitchd",
		"version")
	if err != nil {
		return "", err
	}
	if m := versionLine.FindStringSubmatch(out); m != nil {
		return m[1], nil
	}
	return "", fmt.Errorf("ask Open vSwitch's version: %q", out)
}

// Set runs ovs-vsctl with args, waits until the switch has applied the change and returns the
// output.
func (Machines) Set(args ...string) (string, error) {
	return run("ovs-vsctl", append([]string{"--timeout=10", "-vconsole:off", "--no-syslog"},
		args...)...)
}

// Ports returns the counters of a bridge's ports by port number.
func (Machines) Ports(bridge string) (map[string]Port, error) {
	out, err := run("ovs-ofctl", "--timeout=10", "-vconsole:off", "-vsyslog:off", "--no-names",
		"dump-ports", bridge)
	if err != nil {
		return nil, err
	}
	return parsePorts(out)
}
