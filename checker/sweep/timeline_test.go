package sweep

import (
	"fmt"
	"strings"
)

// timeline draws a history for a failure.
func timeline(rules Rules, ops []Op) string {
	var b strings.Builder
	fmt.Fprintf(&b, "model %d permits %d strict %v lenient %v\n", rules.Model, rules.Permits, rules.StrictBusy, rules.LenientRelease)
	for _, op := range ops {
		end := op.Return
		if op.Outcome == Unknown {
			end = op.Call + 1
		}
		bar := strings.Repeat(" ", int(max(0, op.Call))) + "[" + strings.Repeat("-", int(max(0, end-op.Call))) + "]"
		fmt.Fprintf(&b, "%2d hold %2d owner %d %-8s %-7s fence %d lease %-3s %s\n", op.ID, op.Hold, op.Owner,
			[]string{"acquire", "release", "racquire", "rrelease"}[op.Kind], []string{"ok", "busy", "unknown"}[op.Outcome],
			op.Fence, lease(op), bar)
	}
	return b.String()
}

func lease(op Op) string {
	if op.LeaseEnd == 0 || op.LeaseEnd == Infinity {
		return "-"
	}
	return fmt.Sprint(op.LeaseEnd)
}
