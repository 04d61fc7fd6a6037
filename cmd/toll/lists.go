package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// fullLists refuses lists without anything in them, such as --from=: a list that
// was given is not the default, and an empty one is a mistake.
func fullLists(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		list, is := f.Value.(pflag.SliceValue)
		if is && err == nil && len(list.GetSlice()) == 0 {
			err = usage(fmt.Errorf("--%s is empty", f.Name), "leave it out for the default, or see "+c.CommandPath()+" --help")
		}
	})
	return err
}
