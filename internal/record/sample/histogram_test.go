package sample

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"math"
	"runtime"
	"strings"
	"testing"
)

func TestHistogramRoundTrip(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values map[int64]int64 // nanoseconds: count
	}{
		{"empty", nil},
		{"one", map[int64]int64{50_000: 1}},
		{"many", map[int64]int64{1: 1, 999: 5, 50_000: 1_000_000, 1_000_000: 3, histoMax: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := NewHistogram()
			for v, n := range tt.values {
				if err := h.RecordValues(v, n); err != nil {
					t.Fatal(err)
				}
			}
			e, err := Encode(h)
			if err != nil {
				t.Fatal(err)
			}
			got, err := e.Decode()
			if err != nil {
				t.Fatal(err)
			}
			again := NewHistogram()
			if dropped := got.MergeInto(again); dropped > 0 || !again.Equals(h) ||
				got.TotalCount() != h.TotalCount() {
				t.Errorf("got %d values, want %d", got.TotalCount(), h.TotalCount())
			}
		})
	}
}

func TestHistogramPrecision(t *testing.T) {
	h := NewHistogram()
	for _, v := range []int64{1, 12, 123, 1234, 12_345, 123_456_789, histoMax} {
		h.Reset()
		if err := h.RecordValue(v); err != nil {
			t.Fatal(err)
		}
		if got := h.ValueAtQuantile(50); math.Abs(float64(got-v)) > float64(v)/1000 {
			t.Errorf("%d is read as %d", v, got)
		}
	}
	if err := h.RecordValue(2 * histoMax); err == nil {
		t.Error("two minutes are taken")
	}
}

type forged struct {
	cookie, inner int32 // 0: correct
	length        int32 // of the compressed bytes; 0: correct
	payloadLength int32 // 0: correct
	digits        int32
	low, high     int64
	payload       []byte
}

func (f forged) encode(t testing.TB) EncodedHisto {
	t.Helper()
	or := func(x, otherwise int32) int32 {
		if x == 0 {
			return otherwise
		}
		return x
	}
	var raw, out bytes.Buffer
	put := func(b *bytes.Buffer, v any) {
		if err := binary.Write(b, binary.BigEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	put(&raw, []int32{or(f.inner, 0x1c849313), or(f.payloadLength, int32(len(f.payload))), 0,
		f.digits})
	put(&raw, []int64{f.low, f.high})
	put(&raw, 1.0)
	raw.Write(f.payload)
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	if _, err := z.Write(raw.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	put(&out, []int32{or(f.cookie, 0x1c849314), or(f.length, int32(packed.Len()))})
	out.Write(packed.Bytes())
	return EncodedHisto(base64.StdEncoding.EncodeToString(out.Bytes()))
}

func TestDecodeHostile(t *testing.T) {
	ours := forged{digits: histoDigits, low: histoMin, high: histoMax, payload: []byte{2}}
	if h, err := ours.encode(t).Decode(); err != nil || h.TotalCount() != 1 {
		t.Fatalf("the unchanged one: %v, %v", h, err)
	}
	with := func(change func(*forged)) EncodedHisto {
		f := ours
		change(&f)
		return f.encode(t)
	}
	good := ours.encode(t)
	for _, tt := range []struct {
		name string
		in   EncodedHisto
	}{
		{"empty", ""},
		{"not-base64", EncodedHisto("\x00\xff\x00\xff")},
		{"too-short", EncodedHisto("HIST")},
		{"cut", good[:len(good)/4*2]},
		{"too-long", EncodedHisto(strings.Repeat("A", maxEncoded+1))},
		{"long-and-empty", EncodedHisto(strings.Repeat("A", maxEncoded))},
		{"wrong-cookie", with(func(f *forged) { f.cookie = 7 })},
		{"wrong-inner-cookie", with(func(f *forged) { f.inner = 7 })},
		{"negative-length", with(func(f *forged) { f.length = -1 })},
		{"length-beyond-the-end", with(func(f *forged) { f.length = math.MaxInt32 })},
		{"negative-payload", with(func(f *forged) { f.payloadLength = -1 })},
		{"payload-beyond-the-end", with(func(f *forged) { f.payloadLength = 2 })},
		{"payload-longer-than-said", with(func(f *forged) {
			f.payload = make([]byte, 1000)
			f.payloadLength = 1
		})},
		{"bomb", with(func(f *forged) { f.payload = make([]byte, 64<<20) })},
		{"zeros-beyond-the-end", with(func(f *forged) {
			f.payload = []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
		})},
		{"total-overflows", with(func(f *forged) {
			// zig-zag of MaxInt64
			most := []byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
			f.payload = append(bytes.Clone(most), most...)
		})},
		{"negative-digits", with(func(f *forged) { f.digits = -1 })},
		{"absurd-digits", with(func(f *forged) { f.digits = 1 << 30 })},
		{"absurd-low", with(func(f *forged) { f.low = math.MaxInt64 })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if n := allocated(func() {
				if h, err := tt.in.Decode(); err == nil {
					t.Errorf("decoded %d values", h.TotalCount())
				} else if !strings.HasPrefix(err.Error(), "decode histogram: ") {
					t.Errorf("error %q", err)
				}
			}); n > decodeAllocs {
				t.Errorf("it made Decode allocate %d bytes", n)
			}
		})
	}
}

// decodeAllocs is in bytes: the base64 text several times, and the counts.
const decodeAllocs = 4*maxEncoded + 1<<20

// Decode must refuse a foreign range before it allocates: a visit's header could cost 50 MB and a
// second.
func TestDecodeForeignRange(t *testing.T) {
	for _, tt := range []struct {
		name string
		f    forged
	}{
		{"widest", forged{digits: 5, low: 1, high: math.MaxInt64}},
		{"more-digits", forged{digits: 5, low: histoMin, high: histoMax}},
		{"longer", forged{digits: histoDigits, low: histoMin, high: math.MaxInt64}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := tt.f.encode(t)
			if n := allocated(func() { _, _ = in.Decode() }); n > 1<<20 {
				t.Errorf("%d bytes of file make Decode allocate %d bytes", len(in), n)
			}
		})
	}
}

func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// FuzzDecode adds the envelope, because a fuzzer does not guess checksums.
func FuzzDecode(f *testing.F) {
	f.Add(int32(histoDigits), int64(histoMin), histoMax, []byte{2})
	f.Add(int32(0), int64(1), int64(2), []byte{2, 2})
	f.Add(int32(1), int64(1)<<40, int64(math.MaxInt64), []byte{1, 2})
	f.Add(int32(3), int64(math.MinInt64), int64(math.MinInt64), []byte{2})
	f.Add(int32(2), int64(1000), int64(3_600_000_000),
		[]byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, digits int32, low, high int64, payload []byte) {
		h, err := forged{digits: digits, low: low, high: high, payload: payload}.encode(t).Decode()
		if err != nil {
			return
		}
		if h.TotalCount() < 0 {
			t.Fatalf("%d values", h.TotalCount())
		}
		for _, q := range []float64{0, 50, 99.9, 100} {
			if v := h.ValueAtPercentile(q); v < 0 {
				t.Fatalf("p%v is %d", q, v)
			}
		}
		merged := NewHistogram()
		h.MergeInto(merged)
		h.MergeInto(merged)
		if v := merged.ValueAtQuantile(99); v < 0 {
			t.Fatalf("p99 of two is %d", v)
		}
	})
}
