package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const bothPins = sample.PinFar + "," + sample.PinNear

const pinHelp = "CPUs of client and server: far (one each), near (one for both), none (the scheduler's choice), or CLIENT,SERVER"

func (f *traffic) addPin(fl *pflag.FlagSet, pins string) {
	f.onePin = pins != bothPins
	add(fl, flagDef{name: "pin", group: toSend, value: text(&f.pin, pins), word: "CPUS", help: pinHelp,
		main: "compare ladder", offer: []string{sample.PinFar, sample.PinNear, bothPins, sample.PinNone}})
}

// Tests without a kernel replace placeCPUs.
var placeCPUs = machine.Machine{}.Place

// pinOf returns the value of --pin. Its default is none if client and server are on different
// machines, because CPU numbers differ between machines, and far for a sweep, where one curve for
// each mode is enough.
func (f *traffic) pinOf(fl *pflag.FlagSet, apart, swept bool) (string, error) {
	given := fl.Changed("pin")
	switch {
	case apart && given && f.pin != sample.PinNone:
		return "", usage(fmt.Errorf("--pin %s: client and server are on different machines", f.pin),
			"leave --pin out")
	case apart:
		return sample.PinNone, nil
	case swept && !given:
		return sample.PinFar, nil
	}
	return f.pin, nil
}

// pinned returns the request, which has its loads, with the CPUs of its Pin. given means that the
// user chose them.
func (f *traffic) pinned(r plan.Request, given bool) (_ plan.Request, err error) {
	switch words := strings.Split(r.Pin, ","); {
	case r.Pin == "" || r.Pin == sample.PinNone:
	case slices.Contains(words, sample.PinFar) || slices.Contains(words, sample.PinNear):
		r.Pins, err = pinnings(r, words, f.onePin, given)
	default:
		r.CPUs, err = cpuPair(r.Pin)
	}
	return r, err
}

const pinHint = "--pin far, --pin near, --pin far,near, --pin none, or two CPU numbers: --pin 0,1"

// pinnings returns the placements on CPUs, far before near. It omits default placements that are
// impossible here. one means that the command takes one placement.
func pinnings(r plan.Request, names []string, one, given bool) (out []sample.Pinning, err error) {
	for _, n := range names {
		if n != sample.PinFar && n != sample.PinNear {
			return nil, notPinning(r.Pin)
		}
	}
	if len(names) > 1 && (one || r.Sweep != nil) {
		return nil, usage(fmt.Errorf("--pin %s: this run takes one CPU placement", r.Pin),
			"one run for each: --pin "+names[0])
	}
	threads := plan.MostThreads(r.Loads)
	for _, n := range []string{sample.PinFar, sample.PinNear} {
		if !slices.Contains(names, n) {
			continue
		}
		cpus, err := placeCPUs(n, threads)
		var cannot *machine.PinError
		if errors.As(err, &cannot) {
			if given {
				return nil, usage(err, cannot.Hint())
			}
			if len(names) > 1 {
				continue
			}
			n = sample.PinNear
			cpus, err = placeCPUs(n, threads)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, sample.Pinning{Name: n, CPUs: cpus})
	}
	return out, nil
}

func notPinning(pin string) error {
	return usage(fmt.Errorf("--pin %q: not a CPU placement", pin), pinHint)
}

func cpuPair(pin string) (sample.CPUs, error) {
	words := strings.Split(pin, ",")
	if len(words) != 2 {
		return sample.CPUs{}, notPinning(pin)
	}
	here := machine.Machine{}
	facts, _ := here.Read()
	var n [2]int
	for i, s := range words {
		var err error
		if n[i], err = strconv.Atoi(s); err != nil {
			return sample.CPUs{}, notPinning(pin)
		}
		if !slices.Contains(facts.CPUsAllowed, n[i]) {
			return sample.CPUs{}, usage(fmt.Errorf(
				"--pin %s: this process may use only CPUs %v", pin, facts.CPUsAllowed), pinHint)
		}
	}
	return here.Pinned(n[0], n[1]), nil
}
