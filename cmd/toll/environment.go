package main

import (
	"fmt"
	"os"
)

// An envSwitch is an environment variable that acts like a flag if it has this value.
type envSwitch struct{ name, value string }

func (s envSwitch) set() bool { return os.Getenv(s.name) == s.value }

// checkSwitches refuses values without a meaning, such as TOLL_BUSY=1: the user relies on them.
func checkSwitches() error {
	for _, s := range []envSwitch{busyEnv, historyEnv} {
		if v := os.Getenv(s.name); v != "" && !s.set() {
			return usage(fmt.Errorf("the environment has %s=%q", s.name, v),
				fmt.Sprintf("use %s=%s, or unset it", s.name, s.value))
		}
	}
	return nil
}
