package sweep
import "testing"
func TestDebug(t *testing.T) {
	ops := []Op{
		{ID:0, Hold:0, Kind:RAcquire, Outcome:Busy, Call:7, Return:8},
		{ID:1, Hold:1, Outcome:Unknown, Call:3},
		{ID:2, Hold:1, Kind:Release, Call:7, Return:7},
		{ID:3, Hold:3, Call:11, Return:11},
	}
	r := Rules{Model: ReadWrite, StrictBusy:true, LenientRelease:true}
	d, rep := disagree(r, ops)
	t.Log(d, rep)
	j := &judge{rules: r, ops: ops}
	t.Log(j.read())
	t.Logf("%+v", j.holds)
}
