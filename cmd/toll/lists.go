package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// fullLists refuses empty lists, such as --from=. A given list replaces the default, so an empty
// one is a mistake.
func fullLists(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		list, is := f.Value.(pflag.SliceValue)
		if is && err == nil && len(list.GetSlice()) == 0 {
			err = usage(fmt.Errorf("--%s is empty", f.Name), "leave it out for the default, or see "+c.CommandPath()+" --help")
		}
	})
	return err
}
