package gpu

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// Files as the drivers' documentation and sources write them.
const (
	i915 = "pos:\t0\nflags:\t0100002\nmnt_id:\t21\nino:\t284\ndrm-driver:\ti915\n" +
		"drm-client-id:\t39\ndrm-pdev:\t0000:00:02.0\ndrm-total-system0:\t6044 KiB\n" +
		"drm-engine-render:\t%d ns\ndrm-engine-copy:\t0 ns\ndrm-engine-video:\t0 ns\n" +
		"drm-engine-capacity-video:\t2\ndrm-engine-video-enhance:\t0 ns\n"
	xe = "pos:\t0\nflags:\t0100002\nmnt_id:\t26\nino:\t685\ndrm-driver:\txe\ndrm-client-id:\t3\n" +
		"drm-pdev:\t0000:03:00.0\ndrm-total-system:\t0\ndrm-total-vram0:\t23992 KiB\n" +
		"drm-cycles-rcs:\t0\ndrm-total-cycles-rcs:\t%[2]d\n" +
		"drm-cycles-ccs:\t%[1]d\ndrm-total-cycles-ccs:\t%[2]d\ndrm-engine-capacity-ccs:\t4\n"
	amdgpu = "pos:\t0\nflags:\t02100002\nmnt_id:\t24\nino:\t1239\ndrm-driver:\tamdgpu\n" +
		"drm-client-id:\t17\ndrm-pdev:\t0000:0a:00.0\npasid:\t32770\n" +
		"drm-memory-vram:\t203 KiB\ndrm-memory-gtt: \t0 KiB\ndrm-engine-gfx:\t1000 ns\n" +
		"drm-engine-compute:\t%d ns\n"
	panfrost = "drm-driver:\tpanfrost\ndrm-client-id:\t7\n" +
		"drm-engine-fragment:\t1846584880 ns\ndrm-cycles-fragment:\t1424359409\n" +
		"drm-maxfreq-fragment:\t799999987 Hz\ndrm-curfreq-fragment:\t799999987 Hz\n" +
		"drm-engine-vertex-tiler:\t%d ns\ndrm-cycles-vertex-tiler:\t5\n"
	nouveau = "pos:\t0\ndrm-driver:\tnouveau\ndrm-client-id:\t4\ndrm-pdev:\t0000:01:00.0\n" +
		"drm-total-vram:\t40 MiB\ndrm-resident-vram:\t40 MiB\n"
)

func TestParse(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want client
		has  map[string]count
	}{
		"i915": {fmt.Sprintf(i915, 346249), client{"0000:00:02.0", "39"}, map[string]count{
			"render": {timed: true, ns: 346249}, "copy": {timed: true},
			"video": {timed: true, group: 2}, "video-enhance": {timed: true}}},
		"xe": {fmt.Sprintf(xe, 28257900, 7655183225), client{"0000:03:00.0", "3"},
			map[string]count{"rcs": {total: 7655183225},
				"ccs": {cycles: 28257900, total: 7655183225, group: 4}}},
		"amdgpu": {fmt.Sprintf(amdgpu, 5), client{"0000:0a:00.0", "17"}, map[string]count{
			"gfx": {timed: true, ns: 1000}, "compute": {timed: true, ns: 5}}},
		"panfrost": {fmt.Sprintf(panfrost, 9), client{"panfrost", "7"}, map[string]count{
			"fragment":     {timed: true, ns: 1846584880, cycles: 1424359409},
			"vertex-tiler": {timed: true, ns: 9, cycles: 5}}},
		"only memory": {nouveau, client{}, nil},
		"amdgpu before 5.19": {"pdev:\t0000:0a:00.0\npasid:\t32770\ngfx0:\t12.34%\n", client{},
			nil},
		"another file": {"pos:\t0\nflags:\t02\nmnt_id:\t15\nino:\t9\n", client{}, nil},
		"without a client": {"drm-driver: i915\ndrm-pdev: 0000:00:02.0\n" +
			"drm-engine-render: 5 ns\n", client{}, nil},
		"another unit": {"drm-driver: x\ndrm-client-id: 1\ndrm-engine-a: 5 us\n", client{}, nil},
		"no number": {"drm-driver: x\ndrm-client-id: 1\ndrm-engine-a: -5 ns\n" +
			"drm-engine-b: 1e9 ns\ndrm-engine-c: ns\ndrm-engine-\n", client{}, nil},
		"cycles of unknown time": {"drm-driver: x\ndrm-client-id: 1\ndrm-cycles-a: 5\n" +
			"drm-maxfreq-a: 800 MHz\n", client{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c, counts, ok := parse(tt.text)
			if ok != (tt.has != nil) {
				t.Fatalf("ok %v, counts %v", ok, counts)
			}
			if ok && (c != tt.want || !maps.Equal(counts, tt.has)) {
				t.Errorf("%v %v, want %v %v", c, counts, tt.want, tt.has)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{fmt.Sprintf(i915, 1), fmt.Sprintf(xe, 1, 2), nouveau} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if c, counts, ok := parse(s); ok && (c.id == "" || len(counts) == 0) {
			t.Error(c, counts)
		}
	})
}

// world is a procfs with a server, its child and a stranger.
type world struct {
	t    testing.TB
	proc string
}

const server, child, stranger = 10, 11, 12

func newWorld(t testing.TB) world {
	w := world{t, t.TempDir()}
	for pid, children := range map[int]string{server: strconv.Itoa(child), child: "",
		stranger: ""} {
		w.write(filepath.Join(strconv.Itoa(pid), "task", strconv.Itoa(pid), "children"), children)
		w.file(pid, 0, "pos:\t0\n")
	}
	return w
}

func (w world) write(name, text string) {
	w.t.Helper()
	name = filepath.Join(w.proc, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w world) file(pid, fd int, text string) {
	w.write(filepath.Join(strconv.Itoa(pid), "fdinfo", strconv.Itoa(fd)), text)
}

// TestDRM has a server whose GPU works all the time between tokens, but for the half of one gap of
// 40 ms.
func TestDRM(t *testing.T) {
	const ms = time.Millisecond
	for name, tt := range map[string]struct {
		file   func(busy time.Duration, at time.Duration) string
		engine string
		parts  float64 // the share of the group that works
	}{
		"i915": {func(busy, _ time.Duration) string {
			return fmt.Sprintf(i915, 900+busy.Nanoseconds())
		}, "render", 1},
		"xe": {func(busy, at time.Duration) string { // at 19.2 MHz
			return fmt.Sprintf(xe, 55+busy.Microseconds()*192/10,
				7655183225+at.Microseconds()*192/10)
		}, "ccs", 0.25},
		"amdgpu": {func(busy, _ time.Duration) string {
			return fmt.Sprintf(amdgpu, busy.Nanoseconds())
		}, "compute", 1},
		"panfrost": {func(busy, _ time.Duration) string {
			return fmt.Sprintf(panfrost, busy.Nanoseconds())
		}, "vertex-tiler", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.file(child, 5, tt.file(0, 0))
			w.file(stranger, 5, strings.Replace(tt.file(9, 9), "client-id:\t", "client-id:\t9", 1))
			d := openDRM(w.proc, server)
			if d == nil {
				t.Fatal("no counters found")
			}
			if len(d.files) != 1 {
				t.Fatalf("files %q", d.files)
			}
			d.begin()
			close(d.done)
			d.over.Wait()
			d.last, d.engines = map[client]map[string]count{}, map[engine]*series{}
			began := time.Unix(1, 0)
			at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
			busy := time.Duration(0)
			for i := 0; i <= 100; i += 5 {
				if i > 0 && (i <= 40 || i > 60) {
					busy += 5 * ms
				}
				text := tt.file(busy, time.Duration(i)*ms)
				w.file(child, 5, text)
				w.file(child, 6, text) // a descriptor of the same client
				d.read(at(i))
			}
			g := d.use([]Span{{at(10), at(90)}}, []Span{{at(20), at(60)}, {at(62), at(66)}})
			if g == nil || g.Engine != tt.engine || g.By != sample.GPUByDRM {
				t.Fatalf("%+v", g)
			}
			near := func(got, want float64) bool { return math.Abs(got-want) < 1e-4 }
			if g.Slow.Gaps != 1 || !near(g.Slow.Time, 0.040) ||
				!near(g.Slow.Busy, 0.020*tt.parts) {
				t.Errorf("slow gaps: %+v", g.Slow)
			}
			if !near(g.Rest.Time, 0.036) || !near(g.Rest.Busy, 0.036*tt.parts) {
				t.Errorf("the rest: %+v", g.Rest)
			}
		})
	}
}

// TestDRMOfBusyGPU reads a counter that moves as time does.
func TestDRMOfBusyGPU(t *testing.T) {
	testwait.Unhindered(t, time.Minute, func(u testing.TB) {
		w := newWorld(u)
		w.file(server, 5, fmt.Sprintf(i915, 0))
		d := openDRM(w.proc, server)
		d.begin()
		began := time.Now()
		for time.Since(began) < 300*time.Millisecond {
			busy := min(time.Since(began), 150*time.Millisecond)
			tmp := filepath.Join(w.proc, "new")
			w.write("new", fmt.Sprintf(i915, busy.Nanoseconds()))
			if err := os.Rename(tmp, filepath.Join(w.proc, "10/fdinfo/5")); err != nil {
				u.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
		g := d.end([]Span{{at(10), at(290)}}, []Span{{at(170), at(270)}})
		if g == nil || g.Slow.Share() > 0.1 || g.Rest.Share() < 0.7 {
			u.Errorf("%+v", g)
		}
	})
}

func TestDRMOfNothing(t *testing.T) {
	w := newWorld(t)
	if d := openDRM(w.proc, server); d != nil {
		t.Error("counters without a GPU")
	}
	w.file(server, 5, nouveau)
	if d := openDRM(w.proc, server); d != nil {
		t.Error("counters of a driver that counts only memory")
	}
	w.file(server, 5, fmt.Sprintf(amdgpu, 7))
	kfd := filepath.Join(w.proc, "10/fd/0")
	if err := errors.Join(os.Mkdir(filepath.Dir(kfd), 0o700),
		os.Symlink("/dev/kfd", kfd)); err != nil {
		t.Fatal(err)
	}
	if d := openDRM(w.proc, server); d != nil {
		t.Error("counters that lack the work of AMD's compute driver")
	}
	if err := os.Remove(kfd); err != nil {
		t.Fatal(err)
	}
	d := openDRM(w.proc, server)
	d.begin()
	began := time.Now()
	if g := d.end([]Span{{began, time.Now()}}, nil); g != nil {
		t.Errorf("work that is not counted: %+v", g)
	}
}

// TestDRMOfNewProcess has a server that starts another process between visits.
func TestDRMOfNewProcess(t *testing.T) {
	w := newWorld(t)
	w.file(server, 5, fmt.Sprintf(i915, 7))
	d := openDRM(w.proc, server)
	if err := os.Remove(filepath.Join(w.proc, "10/fdinfo/5")); err != nil {
		t.Fatal(err)
	}
	w.file(child, 8, fmt.Sprintf(i915, 7))
	d.begin()
	d.end(nil, nil)
	if len(d.last) != 1 {
		t.Errorf("the other process is not read: %v", d.files)
	}
}

func TestCountsThatDecrease(t *testing.T) {
	a := count{timed: true, ns: 500}
	b := count{timed: true, ns: 400}
	if x := b.busy(a, 1); x != 0 {
		t.Errorf("worked %g s", x)
	}
	if x := (count{timed: true, ns: 600}).busy(b.later(a), 1); math.Abs(x-100e-9) > 1e-12 {
		t.Errorf("worked %g s, want 100 ns", x)
	}
}
