package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// An envSwitch is an environment variable that commands with the flag obey if it has this value.
type envSwitch struct{ name, value, flag string }

func (s envSwitch) set() bool { return os.Getenv(s.name) == s.value }

// checkSwitches refuses values without a meaning, such as TOLL_BUSY=1, because the user relies on
// them.
func checkSwitches(c *cobra.Command) error {
	for _, s := range []envSwitch{busyEnv, historyEnv} {
		if v := os.Getenv(s.name); v != "" && !s.set() && c.Flags().Lookup(s.flag) != nil {
			return usage(fmt.Errorf("the environment has %s=%q", s.name, v),
				fmt.Sprintf("use %s=%s, or unset it", s.name, s.value))
		}
	}
	return nil
}

var historyEnv = envSwitch{"TOLL_HISTORY", "off", saveFlag}

// busyEnv also silences the warning before the run.
var busyEnv = envSwitch{"TOLL_BUSY", "yes", "busy"}
