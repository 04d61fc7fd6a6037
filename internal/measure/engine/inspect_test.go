package engine_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/fake"
)

func mtu(value string) []path.Setting {
	return []path.Setting{{Where: "machine A", Of: "veth-server", What: "MTU", Value: value}}
}

func bridgeChanges(after int) func(path.Spec, int) ([]path.Setting, error) {
	return func(s path.Spec, visits int) ([]path.Setting, error) {
		if s == bridgeSpec && visits >= after {
			return mtu("600"), nil
		}
		return mtu("1500"), nil
	}
}

func TestChangedPathFailsItsCells(t *testing.T) {
	b := &fake.Builder{Settings: bridgeChanges(20)}
	req := request()
	req.Rounds = 40
	r := try(t, context.Background(), b, req, nil)
	if r.err != nil {
		t.Fatal(r.err)
	}
	if len(r.file.Changes) != 1 {
		t.Fatalf("changes %+v", r.file.Changes)
	}
	c := r.file.Changes[0]
	var of []int
	for i, x := range r.file.Header.Plan.Cells {
		if x.Mode == "bridge" {
			of = append(of, i)
		}
	}
	want := sample.Difference{Where: "machine A", What: "MTU of veth-server", Was: "1500",
		Is: "600"}
	if c.Difference != want || !slices.Equal(c.Cells, of) || len(of) != 2 {
		t.Errorf("change %+v of cells %v", c, of)
	}
	// Twenty visits are ten rounds of two loads; two readings are seconds apart.
	if c.Round < 5 || c.Round > 10 || c.Right >= c.Seen || c.Seen-c.Right > 20 {
		t.Errorf("change %+v", c)
	}
	after := 0
	for _, v := range r.file.Visits {
		if slices.Contains(of, v.Cell) && v.At > c.Seen {
			after++
		}
	}
	if after > 0 {
		t.Errorf("%d visits to a path that was found changed", after)
	}
	if len(r.report.Failed) != 2 || len(r.report.Cells) != 2 {
		t.Fatalf("%d cells, failed %+v", len(r.report.Cells), r.report.Failed)
	}
	for _, f := range r.report.Failed {
		if f.Mode != "bridge" || f.Evidence != "MTU of veth-server on machine A was 1500 and is 600 since round 9" {
			t.Errorf("failed %+v", f)
		}
	}
}

func TestChangeIsFoundAtTheEnd(t *testing.T) {
	req := request()
	req.Rounds = 1
	r := try(t, context.Background(), &fake.Builder{Settings: bridgeChanges(2)}, req, nil)
	if r.err != nil || len(r.file.Changes) != 1 || len(r.report.Failed) != 2 ||
		r.file.Changes[0].Round != 0 {
		t.Errorf("%v, changes %+v, failed %+v", r.err, r.file.Changes, r.report.Failed)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r = try(t, ctx, &fake.Builder{Settings: func(s path.Spec, visits int) ([]path.Setting, error) {
		if s == bridgeSpec && visits >= 2 {
			cancel()
		}
		return bridgeChanges(2)(s, visits)
	}, Rate: func(s path.Spec, _ string, n int) float64 {
		if s == bridgeSpec && n >= 1 {
			cancel()
		}
		return 1e6
	}}, request(), nil)
	if r.end.Reason != sample.EndedByInterrupt || len(r.file.Changes) != 1 ||
		r.file.End.Reason != sample.EndedByInterrupt {
		t.Errorf("end %+v, changes %+v", r.end, r.file.Changes)
	}
}

func TestPassingDifferenceIsNone(t *testing.T) {
	reads := 0
	b := &fake.Builder{Settings: func(s path.Spec, visits int) ([]path.Setting, error) {
		if s == bridgeSpec && visits >= 4 {
			if reads++; reads%2 == 1 {
				return nil, errors.New("a chain is gone while it is written")
			}
		}
		return mtu("1500"), nil
	}}
	req := request()
	req.Rounds = 20
	r := try(t, context.Background(), b, req, nil)
	if r.err != nil || len(r.file.Changes) > 0 || len(r.report.Failed) > 0 || reads == 0 {
		t.Errorf("%v, %d readings, changes %+v", r.err, reads, r.file.Changes)
	}
}

func TestUnreadablePathFails(t *testing.T) {
	for name, from := range map[string]int{"from-the-start": 0, "later": 4} {
		t.Run(name, func(t *testing.T) {
			b := &fake.Builder{Settings: func(s path.Spec, visits int) ([]path.Setting, error) {
				if s == bridgeSpec && visits >= from {
					return nil, errors.New("no such namespace")
				}
				return mtu("1500"), nil
			}}
			req := request()
			req.Rounds = 6
			r := try(t, context.Background(), b, req, nil)
			if r.err != nil || len(r.report.Failed) != 2 ||
				r.report.Failed[0].Evidence != "reading its settings in fake was possible and "+
					"is not: no such namespace since round 1" {
				t.Errorf("%v, failed %+v", r.err, r.report.Failed)
			}
		})
	}
}

func TestChangedPathsEndTheRun(t *testing.T) {
	noisy := func(s path.Spec, _ string, n int) float64 {
		if s == bridgeSpec {
			return 1e6 * (1 + 0.5*float64((n*7919)%13))
		}
		return 1e6
	}
	r := try(t, context.Background(), &fake.Builder{Settings: bridgeChanges(2), Rate: noisy},
		request(), nil)
	if r.err != nil || r.end.Reason != sample.EndedByPrecision {
		t.Errorf("end %+v, %v", r.end, r.err)
	}
	all := func(s path.Spec, visits int) ([]path.Setting, error) {
		return mtu(map[bool]string{true: "1", false: "2"}[visits > 2]), nil
	}
	r = try(t, context.Background(), &fake.Builder{Settings: all, Rate: noisy}, request(), nil)
	if r.err != nil || len(r.report.Failed) != 4 || len(r.report.Cells) != 0 || r.end.Elapsed > 30 {
		t.Errorf("end %+v, %v: %d cells", r.end, r.err, len(r.report.Cells))
	}
}

func TestInspectionIsRare(t *testing.T) {
	clock := &fake.Clock{}
	var took int64
	b := &fake.Builder{}
	b.Settings = func(path.Spec, int) ([]path.Setting, error) {
		const each = 100e6
		took += each
		return mtu("1500"), clock.Sleep(context.Background(), clock.Now()+each)
	}
	req := request()
	req.Rounds = 100
	var records bytes.Buffer
	r := try(t, context.Background(), b, req, func(c *engine.Config) {
		c.Clock, c.Meter, c.Out = clock, fake.Meter{Clock: clock}, sample.NewWriter(&records)
	})
	if share := (float64(took)/1e9 - 0.4) / r.end.Elapsed; r.err != nil || share > 0.011 ||
		share <= 0 {
		t.Errorf("%v: %.3f of %.0f s", r.err, share, r.end.Elapsed)
	}
	f, err := sample.Read(&records)
	if err != nil || len(analysis.Judge(f).Failed) > 0 {
		t.Errorf("%v", err)
	}
}
