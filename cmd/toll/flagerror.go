package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

// flagError rewords pflag's error about a command line.
func flagError(c *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		bare    *pflag.ValueRequiredError
		bad     *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(c, unknown)
	case errors.As(err, &bare):
		f := bare.GetFlag()
		hint := seeHelp(c)
		if preset := strings.Trim(f.DefValue, "[]"); preset != "" {
			hint = "such as --" + f.Name + " " + preset
		}
		return usage(fmt.Errorf("--%s needs a value", f.Name), hint)
	case errors.As(err, &bad):
		return badValue(c, bad)
	}
	return usage(err, seeHelp(c))
}

func seeHelp(c *cobra.Command) string {
	if shortened(c) {
		return "see " + c.CommandPath() + " --" + helpAllFlag
	}
	return "see " + c.CommandPath() + " --help"
}

// badValue describes what is wrong with a flag's value.
func badValue(c *cobra.Command, bad *pflag.InvalidValueError) error {
	flag, cause, hint := bad.GetFlag(), bad.Unwrap(), seeHelp(c)
	var (
		outside boundsError
		hinting interface{ Hint() string }
		quotes  *csv.ParseError
	)
	switch {
	case errors.As(cause, &outside):
		return usage(fmt.Errorf("--%s %s: %w", flag.Name, bad.GetValue(), cause), "")
	case errors.As(cause, &hinting) && hinting.Hint() != "":
		hint = hinting.Hint()
	case errors.As(cause, &quotes): // from pflag's lists
		cause = errors.New("must be words with commas between them, without quotation marks")
	case flag.Value.Type() == "bool":
		cause = errors.New("must be true or false")
	}
	return usage(fmt.Errorf("--%s %q: %w", flag.Name, bad.GetValue(), cause), hint)
}

// unknownFlag suggests the flag that was probably meant, or the commands that have it.
func unknownFlag(c *cobra.Command, err *pflag.NotExistError) error {
	name, text := err.GetSpecifiedName(), error(err)
	if short := err.GetSpecifiedShortnames(); short != "" {
		name, text = short, fmt.Errorf("unknown flag: -%s", short)
	}
	if near := suggest.Words(name, flagNames(c)); len(near) > 0 {
		return usage(text, "did you mean --"+strings.Join(near, " or --")+"?")
	}
	var have []string
	for _, other := range c.Root().Commands() {
		if !other.Hidden && other.Flags().Lookup(name) != nil {
			have = append(have, other.CommandPath())
		}
	}
	if len(have) > 0 {
		return usage(text, fmt.Sprintf("--%s is a flag of %s", name, strings.Join(have, ", ")))
	}
	return usage(text, seeHelp(c))
}

func flagNames(c *cobra.Command) (names []string) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}
