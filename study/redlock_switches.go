package study

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// hazard is a way in which the lock is attacked, and the scenario of it when
// nothing is done about that.
type hazard struct {
	Name, Scenario string
}

// The hazards, in the words of the table.
const (
	pausedWrite   = "pause before the write"
	lateWrite     = "late write"
	pausedAcquire = "pause while acquiring"
	slowAnswers   = "slow answers"
	deadNodes     = "two nodes dead"
	clockSteps    = "clock steps"
	clockTooFast  = "clock too fast"
	nodeForgets   = "node forgets"
)

var hazards = []hazard{
	{Name: pausedWrite, Scenario: "kleppmann-gc-pause"},
	{Name: lateWrite, Scenario: "delayed-write"},
	{Name: pausedAcquire, Scenario: "pause-during-acquire"},
	{Name: slowAnswers, Scenario: "redlock-slow-votes"},
	{Name: deadNodes, Scenario: "partition-minority"},
	{Name: clockSteps, Scenario: "kleppmann-clock-jump"},
	{Name: clockTooFast, Scenario: "redlock-clock-rate-50"},
	{Name: nodeForgets, Scenario: "crash-restart-amnesia"},
}

// Setting is which assumptions are granted: the lock that has its part of them
// built in, and the scenarios in which the surroundings keep theirs.
type Setting struct {
	Name, About string
	Lock        string
	Instead     map[string]string // scenario to the one that is played instead
	// Disk: each command waits for a disk, whose time is not simulated.
	Disk bool
	// Early is the share of each lease that its holder does not use.
	Early float64
	// Removes names the attacks that do no harm any more: what the text says,
	// and the runs must bear out.
	Removes []string
}

// scenario that the setting plays for a hazard.
func (s Setting) scenario(h hazard) string {
	if name, ok := s.Instead[h.Scenario]; ok {
		return name
	}
	return h.Scenario
}

// The scenarios that an assumption replaces, and by what.
var (
	boundedRate    = map[string]string{"redlock-clock-rate-50": "redlock-clock-rate-10"}
	noStep         = map[string]string{"kleppmann-clock-jump": "redlock-clock-slew"}
	delayedRestart = map[string]string{"crash-restart-amnesia": "delayed-restart"}
	fsyncEverySec  = map[string]string{"crash-restart-amnesia": "redlock-fsync-everysec"}
	fsyncAlways    = map[string]string{"crash-restart-amnesia": "redlock-fsync-always"}
	checksVersion  = map[string]string{
		"kleppmann-gc-pause": "check-and-set-pause", "delayed-write": "check-and-set-late-write",
	}
)

// together is several assumptions at once.
func together(parts ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, p := range parts {
		maps.Copy(out, p)
	}
	return out
}

// settings are the rows of the tables. The first has nothing; what each other
// one changes is read against it.
func settings() []Setting {
	const bare, telling, early = "redlock-bare", "redlock-bare-telling", 0.1
	late := []string{pausedAcquire, slowAnswers, deadNodes} // votes that come too late
	most := append(slices.Clone(late), clockSteps, clockTooFast, nodeForgets)
	return []Setting{
		{Name: "nothing", About: "votes count however late they come, and a client waits for a node for up to a TTL", Lock: bare},
		{Name: "elapsed time", About: "the lock looks at the time when all answers are in, and throws late ones away",
			Lock: "redlock-without-node-timeout", Removes: late},
		{Name: "node time-out", About: "no node costs more than 50 ms",
			Lock: "redlock-without-elapsed-check", Removes: []string{slowAnswers, deadNodes}},
		{Name: "both of these", About: "Redlock as it is described, but for the allowance", Lock: "redlock", Removes: late},
		{Name: "told when to stop", About: "the holder learns when its lease ends, less a tenth for clocks that differ, and leaves without writing after that",
			Lock: telling, Early: early, Removes: late},
		{Name: "bounded clock rate", About: "no clock is more than 10 percent off; otherwise one is 50 percent off", Lock: bare, Instead: boundedRate},
		{Name: "bounded rate and told", About: "the two rows above together",
			Lock: telling, Instead: boundedRate, Early: early, Removes: append(slices.Clone(late), clockTooFast)},
		{Name: "no clock step", About: "clocks are put right slowly", Lock: bare, Instead: noStep, Removes: []string{clockSteps}},
		{Name: "fsync every second", About: "Redis' usual setting of its append-only file", Lock: bare, Instead: fsyncEverySec},
		{Name: "fsync on every write", About: "a node answers when the command is on its disk",
			Lock: bare, Instead: fsyncAlways, Disk: true, Removes: []string{nodeForgets}},
		{Name: "delayed restart", About: "a node stays away for 1.2 TTL after a crash", Lock: bare, Instead: delayedRestart, Removes: []string{nodeForgets}},
		{Name: "all of them", About: "all rows above, with the delayed restart and without the fsync",
			Lock: "redlock-telling", Instead: together(boundedRate, noStep, delayedRestart), Early: early, Removes: most},
		{Name: "all, and the resource checks", About: "moreover the resource refuses a write whose writer has not read what is there",
			Lock: "redlock-telling", Instead: together(boundedRate, noStep, delayedRestart, checksVersion), Early: early,
			Removes: append(slices.Clone(most), pausedWrite, lateWrite)},
	}
}

// switchCases are what the tables need.
func switchCases() []Case {
	var out []Case
	for _, s := range settings() {
		for _, h := range hazards {
			out = append(out, Case{Scenario: s.scenario(h), Lock: s.Lock})
		}
	}
	return append(out, calmCases()...)
}

// calmCases compare what the safeguards cost when nothing breaks.
func calmCases() []Case {
	all := settings()
	return []Case{{Scenario: "calm", Lock: all[0].Lock}, {Scenario: "calm", Lock: all[len(all)-1].Lock}}
}

// seldomGranted marks a cell with runs that were harmless for the wrong reason.
const seldomGranted = "†"

// switchTable says in how many runs each hazard did harm under each setting.
func (p *page) switchTable(b Book) {
	head := []string{"assumption"}
	for _, h := range hazards {
		head = append(head, h.Name)
	}
	all := settings()
	var rows [][]string
	for i, s := range all {
		row := []string{"**" + s.Name + "**"}
		for _, h := range hazards {
			off := b[Case{Scenario: h.Scenario, Lock: all[0].Lock}].Ask(Harm)
			on := b[Case{Scenario: s.scenario(h), Lock: s.Lock}].Ask(Harm)
			row = append(row, change(off, on, i == 0))
		}
		rows = append(rows, row)
	}
	p.table(head, rows)
}

// change is a cell: the count with nothing granted, and with the assumption,
// where that differs.
func change(off, on Answer, first bool) string {
	mark := ""
	if on.Silent > 0 {
		mark = " " + seldomGranted
	}
	switch {
	case first:
		return fmt.Sprintf("%d %s%s", on.Hits, on.All().Interval(), mark)
	case off.Hits == on.Hits:
		return "same" + mark
	}
	return fmt.Sprintf("%d → **%d** %s%s", off.Hits, on.Hits, on.All().Interval(), mark)
}

// costTable says what each setting costs.
func (p *page) costTable(b Book) {
	var rows [][]string
	for _, s := range settings() {
		dead := b[Case{Scenario: "partition-minority", Lock: s.Lock}]
		crash := b[Case{Scenario: s.scenario(hazard{Scenario: "crash-restart-amnesia"}), Lock: s.Lock}]
		disk := "no"
		if s.Disk {
			disk = "yes, not measured"
		}
		rows = append(rows, []string{
			"**" + s.Name + "**", waits(dead), fmt.Sprintf("%.1f", dead.GrantsPerTTL()), ttls(dead.LongestGap()), ttls(crash.LongestGap()),
			fmt.Sprintf("%.0f %%", 100*(1-s.Early)), disk,
		})
	}
	p.table([]string{
		"assumption", "two nodes dead: an acquire takes", "two nodes dead: grants per TTL",
		"two nodes dead: longest time without a grant", "a node crashes: longest time without a grant",
		"part of a lease that can be used", "waits for a disk",
	}, rows)
}

// waits is the median and the 99th percentile.
func waits(e *Evidence) string {
	return fmt.Sprintf("%s / %s", short(e.Quantile(0.5)), short(e.Quantile(0.99)))
}

// short rounds to what a reader compares.
func short(d time.Duration) string {
	switch {
	case d == 0:
		return "never granted"
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1000)
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

func ttls(x float64) string { return fmt.Sprintf("%.1f TTL", x) }
