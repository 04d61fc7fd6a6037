package main

import (
	"strconv"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// loadFlag is a flag of one or several loads.
type loadFlag struct {
	value pflag.Value
	// put sets the flag's value on a load, through the load's own flag.
	put func(of workload.Value, l *sample.Load) error
}

// newLoadFlag returns a flag that takes the same values as of.
func newLoadFlag(of workload.Value) loadFlag {
	switch v := of.(type) {
	case workload.Whole:
		to := new(int)
		return loadFlag{wholeFlag(to, v.Preset, v.Least, v.Most), func(of workload.Value, l *sample.Load) error {
			of.(workload.Whole).Put(l, *to)
			return nil
		}}
	case workload.Number:
		to := new(float64)
		return loadFlag{numberFlag(to, v.Preset, v.Least, v.Most), func(of workload.Value, l *sample.Load) error {
			of.(workload.Number).Put(l, *to)
			return nil
		}}
	case workload.Size:
		to := new(int64)
		return loadFlag{sizeFlag(to, v.Preset, v.Least, v.Most), func(of workload.Value, l *sample.Load) error {
			of.(workload.Size).Put(l, *to)
			return nil
		}}
	case workload.Rate:
		to := new(float64)
		return loadFlag{rateFlag(to, 0, v.Least, v.Most), func(of workload.Value, l *sample.Load) error {
			of.(workload.Rate).Put(l, *to)
			return nil
		}}
	case workload.Choice:
		to := wordFlag(v.Preset)
		return loadFlag{&to, func(of workload.Value, l *sample.Load) error {
			v := of.(workload.Choice)
			if to != "" {
				if _, err := parseOne(string(to), closed(v.What, v.Words...)); err != nil {
					return err
				}
			}
			v.Put(l, string(to))
			return nil
		}}
	}
	to := toggleFlag(false)
	return loadFlag{&to, func(of workload.Value, l *sample.Load) error {
		of.(workload.Toggle).Put(l, bool(to))
		return nil
	}}
}

// wordFlag is a flag that takes a word of a closed list.
type wordFlag string

func (f *wordFlag) String() string { return string(*f) }
func (f *wordFlag) Type() string   { return "string" }

// Set accepts any word. The load checks it later.
func (f *wordFlag) Set(s string) error {
	*f = wordFlag(s)
	return nil
}

type toggleFlag bool

func (f *toggleFlag) String() string { return strconv.FormatBool(bool(*f)) }
func (f *toggleFlag) Type() string   { return "bool" }

func (f *toggleFlag) Set(s string) error {
	on, err := strconv.ParseBool(s)
	*f = toggleFlag(on)
	return err
}
