package link

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// interrupts distinguishes ports that share a device by the interrupts' names.
func (k kernelFiles) interrupts(name string) []sample.Interrupt {
	names, complete := k.interruptNames()
	var out []sample.Interrupt
	for _, n := range k.interruptNumbers(name) {
		if names[n] == "" && complete {
			continue
		}
		out = append(out, sample.Interrupt{Number: n, Name: names[n], CPUs: k.interruptCPUs(n)})
	}
	own := slices.DeleteFunc(slices.Clone(out), func(i sample.Interrupt) bool {
		return !named(i.Name, name)
	})
	if len(own) > 0 {
		out = own
	}
	slices.SortFunc(out, func(a, b sample.Interrupt) int { return cmp.Compare(a.Number, b.Number) })
	return out[:min(len(out), sample.MaxInterrupts)]
}

func named(interrupt, device string) bool {
	return slices.Contains(strings.FieldsFunc(interrupt, func(r rune) bool {
		return strings.ContainsRune("-@:._,/ ", r)
	}), device)
}

func (k kernelFiles) interruptNumbers(name string) (out []int) {
	for _, up := range parents {
		entries, err := os.ReadDir(k.inBus(name) + up + "msi_irqs")
		if err != nil {
			continue
		}
		for _, e := range entries {
			if n, err := strconv.Atoi(e.Name()); err == nil {
				out = append(out, n)
			}
		}
		return out
	}
	for _, up := range parents {
		if n, err := strconv.Atoi(line(k.inBus(name) + up + "irq")); err == nil && n > 0 {
			return []int{n}
		}
	}
	return nil
}

func (k kernelFiles) interruptNames() (out map[int]string, complete bool) {
	out = map[int]string{}
	f, err := os.Open(filepath.Join(k.proc, "interrupts"))
	if err != nil {
		return out, false
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		number, rest, ok := strings.Cut(sc.Text(), ":")
		n, err := strconv.Atoi(strings.TrimSpace(number))
		words := strings.Fields(rest)
		if !ok || err != nil || len(words) == 0 {
			continue
		}
		first := len(words) - 1
		for first > 0 && strings.HasSuffix(words[first-1], ",") {
			first--
		}
		if name := strings.Join(words[first:], " "); strings.Trim(name, "0123456789") != "" {
			out[n] = name
		}
	}
	return out, sc.Err() == nil && len(out) > 0
}

func (k kernelFiles) interruptCPUs(n int) string {
	for _, file := range []string{"effective_affinity_list", "smp_affinity_list"} {
		if cpus := line(filepath.Join(k.proc, "irq", fmt.Sprint(n), file)); cpus != "" {
			return cpus
		}
	}
	return ""
}
