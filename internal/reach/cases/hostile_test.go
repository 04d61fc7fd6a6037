package cases

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// grown names the lists that a dump may have much of, with numbers near what toll judges.
var grown = []struct {
	list   string // of the first namespace; "sockets": of the dump
	number int
}{{"links", 1000}, {"addresses", 5000}, {"routes", 9000}, {"neighbours", 9000}, {"policy", 2000},
	{"sockets", 9000}}

// grow makes one of the dump's lists long. Its members have names, indexes and ports of their own.
func grow(dump any, list string, number int) {
	whole, _ := dump.(map[string]any)
	machine, _ := whole["machine"].(map[string]any)
	spaces, _ := machine["namespaces"].([]any)
	if len(spaces) == 0 {
		return
	}
	in, _ := spaces[0].(map[string]any)
	if list == "sockets" {
		in = whole
	}
	members, _ := in[list].([]any)
	like := slices.DeleteFunc(slices.Clone(members), func(m any) bool {
		x, _ := m.(map[string]any)
		return x["kind"] == "bridge" // of which few are copied
	})
	for i := 0; len(like) > 0 && len(members) < number; i++ {
		m, _ := like[i%len(like)].(map[string]any)
		m = maps.Clone(m)
		switch list {
		case "links":
			m["name"], m["index"] = fmt.Sprintf("grown%d", i), 10000+i
		case "sockets":
			m["address"] = fmt.Sprintf("0.0.0.0:%d", 20000+i)
		}
		members = append(members, m)
	}
	in[list] = members
}

// mutant returns a dump with values that no machine has: numbers out of range, texts and messages
// cut, spoilt and swapped, lists without and with too many members. Seeds below the number of grown
// lists only grow one.
func mutant(t testing.TB, dump []byte, seed uint64) []byte {
	t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(dump))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 0))
	if seed < uint64(len(grown)) {
		grow(v, grown[seed].list, grown[seed].number)
	} else {
		if x := grown[r.IntN(len(grown))]; r.IntN(4) == 0 {
			grow(v, x.list, r.IntN(x.number))
		}
		// one value in this many is changed
		v = spoil(r, []int{10, 100, 1000, 3000}[r.IntN(4)], v)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func spoil(r *rand.Rand, rare int, v any) any {
	hit := r.IntN(rare) == 0
	switch x := v.(type) {
	case map[string]any:
		for k, y := range x {
			x[k] = spoil(r, rare, y)
		}
		if hit {
			for k := range x {
				delete(x, k)
				break
			}
		}
	case []any:
		for i := range x {
			x[i] = spoil(r, rare, x[i])
		}
		if hit && len(x) > 0 {
			switch i := r.IntN(len(x)); r.IntN(4) {
			case 0:
				return x[:i]
			case 1:
				x[0], x[i] = x[i], x[0]
			case 2:
				for range r.IntN(2000) {
					x = append(x, x[i])
				}
			default:
				return nil
			}
		}
		return x
	case json.Number:
		if hit {
			return []any{0, -1, 1, 255, 65536, 1 << 31, int64(1) << 62, 2147483647}[r.IntN(8)]
		}
	case string:
		if hit && x != "" {
			return spoilText(r, x)
		}
	case bool:
		return x != hit
	}
	return v
}

// spoilText changes a text, which may be a message in base64.
func spoilText(r *rand.Rand, s string) string {
	b := []byte(s)
	switch r.IntN(5) {
	case 0:
		return s[:4*r.IntN(len(s)/4+1)]
	case 1:
		return strings.Repeat(s, r.IntN(50))
	case 2:
		return "../" + s + "/.. %s\x00\n"
	default:
		const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
		for range 1 + r.IntN(8) {
			if i := r.IntN(len(b)); b[i] != '=' {
				b[i] = letters[r.IntN(len(letters))]
			}
		}
		return string(b)
	}
}

// A dump may come from anyone. Whatever it contains, judging it must end in time with an answer or
// an error, and must not change the machine.
func TestHostileDumps(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "namespaces of a machine need root")
	}
	t.Parallel()
	m := start(t, &situation{cards: situations(t, everything)[0].cards, quiet: true})
	before := m.state([]string{"machine"})
	dump := unzipped(t, situations(t, everything)[0].dump())
	for i, x := range grown {
		if err := m.judgeMutant(t, dump, uint64(i)); err != nil {
			t.Errorf("%d %s: %v", x.number, x.list, err)
		}
	}
	refused := 0
	all := situations(t, "*")
	for i, s := range all {
		b := unzipped(t, s.dump())
		if m.judgeMutant(t, b, uint64(len(grown)+i)) != nil {
			refused++
		}
	}
	if refused == 0 || refused == len(all) {
		t.Errorf("%d of %d dumps were refused", refused, len(all))
	}
	if after := m.state([]string{"machine"}); after["machine"] != before["machine"] {
		t.Errorf("the machine changed: %s", changed(before["machine"], after["machine"]))
	}
}

func FuzzHostileDump(f *testing.F) {
	if os.Geteuid() != 0 {
		f.Skip("namespaces of a machine need root")
	}
	m := start(f, &situation{cards: situations(f, everything)[0].cards})
	dump := unzipped(f, situations(f, everything)[0].dump())
	f.Add(uint64(len(grown))) // TestHostileDumps has those before
	f.Fuzz(func(t *testing.T, seed uint64) { _ = m.judgeMutant(t, dump, seed) })
}

func unzipped(t testing.TB, file string) []byte {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// judgeMutant returns the error that a dump's user would see.
func (m *machine) judgeMutant(t *testing.T, dump []byte, seed uint64) error {
	t.Helper()
	const memory = 512 << 10 // KiB, of all processes; a few times of what real dumps need
	name := fmt.Sprintf("/run/mutant-%d.json.gz", seed)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := z.Write(mutant(t, dump, seed))
	if err = errors.Join(err, z.Close(),
		os.WriteFile(m.file(name), zipped.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(m.file(name))
	cmd := m.command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", m.self, "judge",
		name)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	ended := make(chan error, 1)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-time.After(2 * patience):
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		t.Fatalf("seed %d: it does not end", seed)
	}
	if used := cmd.ProcessState.SysUsage().(*syscall.Rusage); used.Maxrss > memory {
		t.Errorf("seed %d: %d KiB of memory", seed, used.Maxrss)
	}
	if text := out.String(); strings.Contains(text, "panic:") || strings.Contains(text, "fatal error:") ||
		strings.Contains(text, "goroutine ") {
		t.Errorf("seed %d: %s", seed, text)
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, out.Bytes()[:min(out.Len(), 500)])
	}
	return nil
}
