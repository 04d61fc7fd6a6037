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

func (f *traffic) pinInto(r *plan.Request) (err error) {
	if len(f.sweep.given) > 0 && !f.loads.given("pin") { // one curve for each mode is enough
		f.pin = sample.PinFar
	}
	r.Pin = f.pin
	switch words := strings.Split(f.pin, ","); {
	case f.pin == "" || f.pin == sample.PinNone:
		return nil
	case slices.Contains(words, sample.PinFar) || slices.Contains(words, sample.PinNear):
		r.Pins, err = f.pinnings(words)
	default:
		r.CPUs, err = f.cpuPair(words)
	}
	return err
}

const pinHint = "--pin far, --pin near, --pin far,near, --pin none, or two CPU numbers: --pin 0,1"

// pinnings returns the placements on CPUs, far before near. It omits default placements that are
// impossible here.
func (f *traffic) pinnings(names []string) (out []sample.Pinning, err error) {
	for _, n := range names {
		if n != sample.PinFar && n != sample.PinNear {
			return nil, f.notPinning()
		}
	}
	if len(names) > 1 && (f.onePin || len(f.sweep.given) > 0) {
		return nil, usage(fmt.Errorf("--pin %s: this run takes one CPU placement", f.pin),
			"one run for each: --pin "+names[0])
	}
	for _, n := range []string{sample.PinFar, sample.PinNear} {
		if !slices.Contains(names, n) {
			continue
		}
		cpus, err := placeCPUs(n, f.loads.mostThreads())
		var cannot *machine.PinError
		if errors.As(err, &cannot) {
			if f.loads.given("pin") {
				return nil, usage(err, cannot.Hint())
			}
			if len(names) > 1 {
				continue
			}
			n = sample.PinNear
			cpus, err = placeCPUs(n, f.loads.mostThreads())
		}
		if err != nil {
			return nil, err
		}
		out = append(out, sample.Pinning{Name: n, CPUs: cpus})
	}
	return out, nil
}

func (f *traffic) notPinning() error {
	return usage(fmt.Errorf("--pin %q: not a CPU placement", f.pin), pinHint)
}

func (f *traffic) cpuPair(words []string) (sample.CPUs, error) {
	if len(words) != 2 {
		return sample.CPUs{}, f.notPinning()
	}
	here := machine.Machine{}
	facts, _ := here.Read()
	var n [2]int
	for i, s := range words {
		var err error
		if n[i], err = strconv.Atoi(s); err != nil {
			return sample.CPUs{}, f.notPinning()
		}
		if !slices.Contains(facts.CPUsAllowed, n[i]) {
			return sample.CPUs{}, usage(fmt.Errorf(
				"--pin %s: this process may use only CPUs %v", f.pin, facts.CPUsAllowed), pinHint)
		}
	}
	return here.Pinned(n[0], n[1]), nil
}
